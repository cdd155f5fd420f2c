"""A repository's branches, commits and merges, by git. Not for a prompt.

branches: which branch was checked out at a time, and whether it is merged
commits: commits, and who wrote a file's lines
merges: trial merges of two commits or two worktrees
"""
