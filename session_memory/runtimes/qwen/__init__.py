"""Qwen Code: its chats, and the events of its hooks."""
