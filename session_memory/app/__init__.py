"""Programs that people and agents run.

active_sessions: sessions as `agents` and the page show them
commands: the subcommands of `session-memory`
install: installing into homes and out again, on a bare Python
labels: names of projects, and quotations on one line
notices: tells you that a session begins to wait for you
projects: the project that a person or an agent names
session_counts: how many open sessions are in each state
session_reader: reading the sessions that are open or were active today
tools: the agent's tools, as SDK server and MCP server
upkeep: work nobody waits for
"""
