"""Updates on histories that public repositories keep in git: replayed, drawn with a seed, and
labelled."""
