import sys

sys.path.insert(0, __file__[: -len("/hooks/pre_compact.py")])
try:
    from session_memory.hooks.main import pre_compact
except Exception:  # a broken installation must not stand in the way; `session-memory doctor` says what is wrong
    sys.exit(0)
pre_compact()
