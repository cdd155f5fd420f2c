import sys

sys.path.insert(0, __file__[: -len("/pi_prompt.py")])
try:
    from entry import run

    run("before_agent_start")
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
