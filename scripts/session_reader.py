#!/usr/bin/env python3
"""Shows another session's activity: see --help."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "session-memory: Python 3.10 or newer is needed, and this is %d.%d" % sys.version_info[:2]
    )
sys.path.insert(0, __file__[: -len("/scripts/session_reader.py")])
from session_memory.common.system.terminal import main_of

sys.exit(main_of("app.commands.read"))
