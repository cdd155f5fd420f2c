"""Access to the machine: files, JSON, SQLite, locks, the terminal. Nothing here knows about
sessions."""
