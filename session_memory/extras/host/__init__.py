"""A host: a program that serves the groups of one directory, each with its own sessions.

administration: tasks, groups and chats, administered by an agent
channels: sources of messages and destinations of replies
command: `session-memory host`
group_backend: the sessions of a group, for the tools of its agent
leftovers: the hosts that stay after an uninstall
recovery: repairs after a host was killed
request_files: tool calls as files, from a sandbox
settings: the section `host` of config.yaml
tool_server: the tools of a group, as `session-memory mcp` serves them
tools: tools that only a group's agent has
"""
