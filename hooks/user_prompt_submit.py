import sys

sys.path.insert(0, __file__[: -len("/hooks/user_prompt_submit.py")])
try:
    from session_memory.hooks.main import user_prompt_submit
except Exception:  # a broken installation must not break the prompt; `session-memory doctor` says what is wrong
    sys.exit(0)
user_prompt_submit()
