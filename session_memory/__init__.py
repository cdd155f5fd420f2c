"""session-memory: the memory of all sessions of an agent's home."""

__version__ = "0.1.0"
