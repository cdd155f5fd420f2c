import sys

sys.path.insert(0, __file__[: -len("/hooks/pi_prompt.py")])
try:
    from session_memory.hooks.main import before_agent_start
except Exception:  # a broken installation must not break the prompt; `session-memory doctor` says what is wrong
    sys.exit(0)
before_agent_start()
