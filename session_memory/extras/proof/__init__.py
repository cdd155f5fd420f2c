"""Proof of use: the updates that sessions received, their effect, and moments without an update.

command: `session-memory proof`
view: the page's view
words: the proof as text and as JSON
"""
