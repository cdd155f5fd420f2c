"""The strategies that make memories of conversations."""
