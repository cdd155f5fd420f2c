"""Channels: sources of messages and destinations of replies.

A new channel is a file `channels/<name>.py` in a host's directory. `channel` has the interface and
loads such files; `unix_socket` is a channel.
"""
