"""The strategy that asks Claude for a summary.

strategy: one episode per conversation, and memories with quotations
"""
