"""The strategies that make memories of conversations.

extractive: without a model
summary: with a summary by Claude
"""
