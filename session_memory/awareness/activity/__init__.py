"""Activity of other sessions: changes, entries, reports, collisions, updates and their delivery."""
