"""The tools with which an agent reads its sessions and switches between them.

backend: the base class of a backend, which a call asks for sessions
call: one call of a tool, and its result
definitions: the tools, each defined once
home_backend: the sessions of a home
permissions: rules of runtimes that let read-only tools run without a question
results: results of the tools as text
sdk_server: the tools inside a program with claude-agent-sdk
session_tools: the tools for an agent's sessions and memories
store_results: results from the content of a store
values: values of the tools
"""
