"""The store's engine on SQLite. All of the store's SQL is here.

corruption: the one place that decides if the store is corrupt, and replaces it
counted_files: counts of transcripts, kept until these change
engine: the store of one machine in one file
exclusions: items and transcripts that rules hide, for every query
queue: the conversations that wait for strategies
queue_database: the store with its queue attached
queue_file: the queue and token accounts, in a file of their own
redaction: secrets redacted again by newer rules
rows: conditions of a filter, and rows as values
search_index: the index of all text
tool_uses: listings of tool uses, hours, places and shared transcripts
unchanged: a cheap check whether anything is new
unread_lines: hashes of lines that ingest left out
unread_words: transcripts with words that an earlier version left out
written_lines: hashes of the lines that items wrote
"""
