"""From transcripts to the store."""
