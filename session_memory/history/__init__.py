"""Everything that was said and done, and the search for it.

archives: conversations as Markdown
conflicts: conflicts between live sessions of a repository, before the merge
copies: copies of transcripts, and restoring from them
costs: costs of sessions
disk: the disk space of all data, and the person's limit
export: conversations as a stream of Markdown or JSON
filtering: conversations shortened and split for a model
forgotten_marks: the marks of all messages in a transcript
git: branches, commits and trial merges
marks: labels and pins of sessions, and seen rows of the page
patterns: failing commands, files edited together, reasons for a line
prices: prices of models
recorded: records in transcripts behind items of the store
search: the search above every engine
store: all transcripts in a database
titles: titles of conversations in lists, with the last request of their session
told: the texts that sessions were told, from their transcripts
told_lines: the kinds of `!` lines in an update, and their files
trajectory: a session in ATIF, the format of Harbor
"""
