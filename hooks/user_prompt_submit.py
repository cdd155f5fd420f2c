import sys

sys.path.insert(0, __file__[: -len("/user_prompt_submit.py")])
try:
    from entry import run

    run("user_prompt_submit")
# a broken installation must not stop anything; `session-memory doctor` says what is wrong
except Exception:
    sys.exit(0)
