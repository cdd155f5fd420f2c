"""Conversations kept as Markdown.

at_end: the archive before a compaction, and when a conversation is left
due: archives of conversations that ended without a hook
estimate: the room that the archives of all sessions will take
format: an archive as Markdown
list: the archives in a directory, and the text about them for an agent
past: the past of a session for its agent
upkeep: its steps of upkeep
writer: the archive of one session, streamed from its transcript
"""
