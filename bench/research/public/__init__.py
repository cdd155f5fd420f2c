"""A public benchmark for finding the past coding session that answers a question.

README.md has its tasks, protocol and results.
"""
