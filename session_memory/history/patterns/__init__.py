"""Patterns in agents' work: commands that fail and their solutions, files edited together."""
