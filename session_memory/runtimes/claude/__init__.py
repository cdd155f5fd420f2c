"""Claude Code and claude-agent-sdk, which share their transcripts, hooks and settings."""
