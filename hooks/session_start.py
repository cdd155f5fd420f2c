import sys

sys.path.insert(0, __file__[: -len("/hooks/session_start.py")])
try:
    from session_memory.hooks.main import session_start
except Exception:  # a broken installation must not break the prompt; `session-memory doctor` says what is wrong
    sys.exit(0)
session_start()
