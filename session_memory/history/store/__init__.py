"""The store: every transcript as entries in a database, cut into conversations and searchable.

It can be rebuilt from the transcripts at any time. Nothing outside this package knows SQL."""
