import sys

sys.path.insert(0, __file__[: -len("/hooks/pi_archive.py")])
if sys.version_info < (3, 10):
    sys.path.insert(0, sys.path[0] + "/hooks")
    import old_python

    old_python.end()
try:
    from session_memory.awareness.events.main import pi_archive

    pi_archive()
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
