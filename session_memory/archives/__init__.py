"""Conversations kept as Markdown."""
