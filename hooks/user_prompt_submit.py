import sys

sys.path.insert(0, __file__[: -len("/hooks/user_prompt_submit.py")])
from session_memory.hook import user_prompt_submit

user_prompt_submit()
