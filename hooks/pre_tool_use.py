import sys

sys.path.insert(0, __file__[: -len("/pre_tool_use.py")])
try:
    from entry import run

    run("pre_tool_use")
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
