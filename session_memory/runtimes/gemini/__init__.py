"""Gemini CLI: its chats, their mirrors, and the events of its hooks."""
