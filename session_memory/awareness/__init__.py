"""Updates about other sessions for a prompt, a call and a sub-agent.

activity: the work of other sessions, as reports and updates
events: the hooks of the runtimes
"""
