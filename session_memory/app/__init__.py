"""Programs that people and agents run.

commands: the subcommands of `session-memory`
install: installing into homes and out again, on a bare Python
projects: the project that a person or an agent names
tools: the agent's tools, as SDK server and MCP server
upkeep: work nobody waits for
"""
