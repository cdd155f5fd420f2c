"""Codex: its rollouts, and the events of its hooks."""
