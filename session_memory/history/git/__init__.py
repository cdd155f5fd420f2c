"""A repository's branches, commits and merges."""
