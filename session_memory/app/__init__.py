"""Programs that people and agents run.

commands: the subcommands of `session-memory`
install: installing into homes and out again, on a bare Python
tools: the agent's tools, as SDK server and MCP server
upkeep: work nobody waits for
"""
