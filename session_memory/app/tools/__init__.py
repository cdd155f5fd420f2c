"""The tools with which an agent reads its sessions and switches between them.

backend: the base class of a backend, which a call asks for sessions
call: one call of a tool, and its result
definitions: the tools, each defined once
home_backend: the sessions of a home
permissions: rules of runtimes that let read-only tools run without a question
sdk_server: the tools inside a program with claude-agent-sdk
values: values of the tools
"""
