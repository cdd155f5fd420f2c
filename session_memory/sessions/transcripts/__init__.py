"""Transcripts: entries, lines, cursors, the reader, and which sessions and pointers exist.

earlier_paths: paths of a repository before it was moved or cloned again
edits: the files that a call edits, with removed and added text
entries: sessions, entries and tool uses as values
gate: the permission to show a session, its records and its title
lines: lines with their byte offsets, from either end
log: the last entries, as a log
marks: the marks by which copies of a message are recognised
mirror: transcripts written for runtimes with another form of sessions
old_sessions: recent and old transcripts of a folder with thousands
pointers: the active session of each group, and its saved ones
project_folders: the folders of a project's transcripts, found for the index
projects: the folders and sessions of a project, from the index
read_cursor: where reading a transcript resumes
reader: the one reader of transcripts
remote_sessions: sessions on other machines, which upkeep keeps here
sessions: the sessions of a home in every runtime, and the choice of one
turns: whether a session is at work
usage: the tokens that an answer used
"""
