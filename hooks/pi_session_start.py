import sys

sys.path.insert(0, __file__[: -len("/hooks/pi_session_start.py")])
if sys.version_info < (3, 10):
    sys.path.insert(0, sys.path[0] + "/hooks")
    import old_python

    old_python.end()
try:
    from session_memory.app.install.plugin_start import pi_session_start
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
pi_session_start(__file__)
