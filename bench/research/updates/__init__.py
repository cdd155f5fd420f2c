"""Updates for histories that public repositories keep in git: replayed, drawn and labelled."""
