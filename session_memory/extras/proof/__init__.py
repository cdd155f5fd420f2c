"""Proof of use: texts that sessions were told, their effect, and the same moments without a report.

command: `session-memory proof`
view: the page's view
words: the proof as text and as JSON
"""
