import sys

sys.path.insert(0, __file__[: -len("/hooks/pre_compact.py")])
if sys.version_info < (3, 10):
    sys.path.insert(0, sys.path[0] + "/hooks")
    import old_python

    old_python.end()
try:
    from session_memory.awareness.events.main import pre_compact

    pre_compact()
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
