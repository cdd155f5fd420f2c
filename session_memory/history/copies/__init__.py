"""Copies of transcripts, from which a session that its runtime deleted is restored.

chunks: splits a file into chunks and packs each
deletions: which runtimes delete sessions by themselves, and when
keep: copies of new content, session by session
pack: the database of the copies
restore: puts a session back where its runtime looks for it
upkeep: its steps of upkeep
"""
