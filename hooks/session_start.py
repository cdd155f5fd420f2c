import sys

sys.path.insert(0, __file__[: -len("/hooks/session_start.py")])
from session_memory.hook import session_start

session_start()
