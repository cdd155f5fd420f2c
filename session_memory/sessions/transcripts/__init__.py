"""Transcripts: entries, lines, cursors, the reader, and which sessions and pointers exist."""
