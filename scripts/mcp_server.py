"""The MCP server of a plugin, with whatever Python is on the PATH: `session-memory mcp`."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "session-memory: Python 3.10 or newer is needed, and this is %d.%d" % sys.version_info[:2]
    )
sys.path.insert(0, __file__[: -len("/scripts/mcp_server.py")])
from session_memory.common.system.terminal import main_of

sys.exit(main_of("app.commands.mcp"))
