"""A public benchmark: which past coding session answers this. README.md tells its tasks, protocol
and results."""
