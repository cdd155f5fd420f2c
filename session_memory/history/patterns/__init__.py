"""Patterns in agents' work, found in the store.

errors: earlier occurrences of an error, and what solved it
failures: commands that fail, and their solutions
flows: steps that follow each other, and recoveries from failing ones
habits: frequent actions of an agent, and their order
handoff: the page that hands a session over
project_work: the work of sessions by project, with commits
why: which session wrote a line, and who asked for it
why_text: the reasons in words
work: the work of sessions since a time
"""
