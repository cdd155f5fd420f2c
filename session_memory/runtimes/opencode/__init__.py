"""OpenCode: its database, of which we keep mirrors, and the events that our plugin file sends."""
