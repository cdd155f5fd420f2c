"""A host: a program that serves the groups of one directory, each with its own sessions, archives
and tasks."""
