"""Conversations kept as Markdown.

due: archives of conversations that ended without a hook
estimate: the room that the archives of all sessions will take
format: an archive as Markdown
list: the archives in a directory, and the text about them for an agent
upkeep: its steps of upkeep
writer: the archive of one session, streamed from its transcript
"""
