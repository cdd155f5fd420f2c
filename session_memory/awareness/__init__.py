"""Updates about other sessions for a prompt, a call and a sub-agent.

activity: the work of other sessions, as reports and updates
events: the hooks of the runtimes
install: hooks in a runtime's settings, and out of them again
"""
