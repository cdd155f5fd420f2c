"""The strategy that asks Claude for a summary."""
