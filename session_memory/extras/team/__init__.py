"""A store that several people or machines share.

command: `session-memory team`
conflicts: conflicts with sessions on other machines
postgres: the engine
push: pushes from a machine's own store, and withdrawals
sharing: which sessions are shared, as what
upkeep: its step of upkeep
"""
