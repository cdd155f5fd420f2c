"""Converts Pi's session files to transcripts of Claude Code: see --help."""

import sys

sys.path.insert(0, __file__[: -len("/scripts/pi_to_claude.py")])
from session_memory.commands.pi_to_claude import main

sys.exit(main())
