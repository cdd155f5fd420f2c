import sys

sys.path.insert(0, __file__[: -len("/post_tool_use_failure.py")])
try:
    from entry import run

    run("post_tool_use_failure")
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
