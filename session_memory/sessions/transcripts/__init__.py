"""Transcripts: entries, lines, cursors, the reader, which sessions there are, and pointers to
them."""
