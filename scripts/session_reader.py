"""Shows what another session did: see --help."""

import sys

sys.path.insert(0, __file__[: -len("/scripts/session_reader.py")])
from session_memory.commands.session_reader import main

sys.exit(main())
