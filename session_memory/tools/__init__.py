"""The tools with which an agent looks into its sessions and switches between them: defined once, served twice.

`sdk_server` serves them inside a program that runs agents with claude-agent-sdk, `stdio` to any MCP client.
"""

from __future__ import annotations

from .backend import Desk, Hit, Listed, RefusedError
from .call import Answer, call
from .definitions import TOOLS
from .host_backend import HostDesk, host_desk
from .plain_backend import PlainDesk
from .sdk_server import sdk_server

__all__ = [
    "TOOLS", "Answer", "Desk", "Hit", "HostDesk", "Listed", "PlainDesk", "RefusedError", "call", "host_desk",
    "sdk_server",
]  # fmt: skip
