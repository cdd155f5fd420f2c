#!/usr/bin/env python3
"""Converts Pi's session files to transcripts of Claude Code: see --help."""

import sys

if sys.version_info < (3, 10):
    sys.exit("session-memory: Python 3.10 or newer is needed, and this is %d.%d" % sys.version_info[:2])
sys.path.insert(0, __file__[: -len("/scripts/pi_to_claude.py")])
from session_memory.system.terminal import main_of

sys.exit(main_of("commands.pi_to_claude"))
