"""The views: one function each, which turns the store and transcripts into plain values for its
template."""
