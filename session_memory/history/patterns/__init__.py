"""Patterns in agents' work, found in the store.

failures: commands that fail, and what helped
habits: what an agent does often, and in which order
handoff: the page that hands a session over
why: which session wrote a line, and who asked for it
why_text: the reasons in words
"""
