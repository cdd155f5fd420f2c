#!/usr/bin/env python3
"""The command `session-memory`, as plugins and packages bring it, with whatever Python is on the
PATH: see --help."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "session-memory: Python 3.10 or newer is needed, and this is %d.%d" % sys.version_info[:2]
    )
sys.path.insert(0, __file__[: -len("/scripts/memory.py")])
from session_memory.cli import main_of_package

if __name__ == "__main__":  # processes that read ahead import this file
    sys.exit(main_of_package())
