"""The views: one function each, which makes plain values for its template of what the store and transcripts tell."""
