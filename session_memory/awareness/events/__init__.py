"""The hooks of the runtimes: an event, its context, the answer.

bundle: the file of code that a prompt loads, made by an install
callbacks: the work of a hook inside a program with claude-agent-sdk
context: the home, session, transcript and settings of an event
delivery_state: a session's last update, whether it arrived, and the next one
failed_call: the file that a call with a wrong path meant
log: a home's hook.log, missed deadlines and invalid settings
main: the hooks as programs that a runtime starts
prompt: the answer to a prompt
session_end: the work when a conversation is compacted or ends
tool_call: the answer to a tool call
upkeep_start: the start of upkeep in a process of its own
"""
