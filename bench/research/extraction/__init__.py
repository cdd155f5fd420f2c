"""Labels for the results of rules in public sessions, and for a reader's choices (README.md)."""
