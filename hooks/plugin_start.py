import sys

sys.path.insert(0, __file__[: -len("/hooks/plugin_start.py")])
if sys.version_info < (3, 10):
    sys.path.insert(0, sys.path[0] + "/hooks")
    import old_python

    old_python.end()
try:
    from session_memory.app.install.plugin_start import run
# a broken installation must not break the session; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
run(__file__, sys.argv[1:])
