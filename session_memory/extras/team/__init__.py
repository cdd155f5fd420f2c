"""A store that several people or machines share.

command: `session-memory team`
conflicts: conflicts with sessions on other machines
engine: the interface of the postgres engine
handing_over: `handoff --team`
handoffs: sessions that others handed over
postgres: the engine
push: pushes from a machine's own store, and withdrawals
settings: the section `team` of config.yaml
tools: the tool `search_team`
upkeep: its step of upkeep
"""
