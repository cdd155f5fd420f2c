"""The views: one function each, from the store and transcripts to plain values for a template."""
