"""The tools with which an agent reads its sessions and switches between them, defined once
(`definitions`).

They use a `Backend`: the sessions of a home, or of a group (extras.host.group_backend). `sdk_server` serves
them inside a program that runs agents with claude-agent-sdk, `stdio_server` to any MCP client.
"""

from __future__ import annotations

from ._home_backend import HomeBackend
from .backend import Backend
from .call import ToolResult, call
from .definitions import TOOLS
from .sdk_server import sdk_server
from .values import ListedSession, RefusedError, SearchLimits, SearchResult

__all__ = [
    "TOOLS",
    "Backend",
    "HomeBackend",
    "ListedSession",
    "RefusedError",
    "SearchLimits",
    "SearchResult",
    "ToolResult",
    "call",
    "sdk_server",
]
