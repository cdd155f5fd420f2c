import sys

sys.path.insert(0, __file__[: -len("/session_waits.py")])
try:
    from entry import run

    run("session_waits")
# a broken installation must not stop anything; `session-memory doctor` names the fault
except Exception:
    sys.exit(0)
