import sys

sys.path.insert(0, __file__[: -len("/hooks/waiting.py")])
if sys.version_info < (3, 10):
    sys.path.insert(0, sys.path[0] + "/hooks")
    import old_python

    old_python.end()
try:
    from session_memory.app.session_counts import main
except Exception:  # a broken installation; `session-memory doctor` names the fault
    sys.exit(0)
if __name__ == "__main__":
    main(sys.argv[1:])
