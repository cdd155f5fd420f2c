"""session-memory: the memory of all sessions of an agent's home."""

NAME = "session-memory"  # of the command
__version__ = "0.2.1"
