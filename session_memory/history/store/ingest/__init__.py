"""From transcripts to the store.

checkpoints: sessions that a repository keeps in git
extract: a transcript's content as redacted values
ingestion: new content of each file, one transaction per batch
intake: new content of the watched directories
sources: the directories in which transcripts are found
values: the values that go into the store
"""
