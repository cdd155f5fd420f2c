"""GitHub Copilot CLI: the events of its sessions, and those of its hooks."""
