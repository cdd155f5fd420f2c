"""Channels: sources of messages and destinations of replies. A new one is one file,
`channels/<name>.py` of a host's directory.

`channel` has the interface and loads such files; `unix_socket` is a channel."""
