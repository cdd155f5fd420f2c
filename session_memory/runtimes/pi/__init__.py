"""Pi: its session files, and the events that our extension sends."""
