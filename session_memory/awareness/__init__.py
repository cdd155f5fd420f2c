"""Updates about other sessions for a prompt, a call and a sub-agent."""
