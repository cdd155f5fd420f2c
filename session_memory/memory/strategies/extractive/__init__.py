"""The strategy without a model."""
