"""A host: a program that serves the groups of one directory, each with sessions, archives and tasks of its own."""
