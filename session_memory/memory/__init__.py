"""Durable memories: finished conversations turned into knowledge by strategies, worked off a
queue."""
