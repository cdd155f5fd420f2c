"""Collisions: two sessions on the same file, branch or worktree.

facts: the collisions over one file, branch or worktree
ref_notes: notes of git's stashes, branches and worktrees
search: the search that serves prompts and tool calls
"""
