"""The strategy without a model.

sentences: splits text into sentences, and makes excerpts
strategy: a line of the log for each conversation, and solutions of errors
"""
