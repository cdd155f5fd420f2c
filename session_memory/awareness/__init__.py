"""Updates about other sessions for a prompt, a call and a sub-agent.

activity: what other sessions did, as reports and updates
events: the hooks of the runtimes
"""
