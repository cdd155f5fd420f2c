"""The tools with which an agent reads its sessions and switches between them.

backend: the sessions of a home, or of a group of a host
call: one call of a tool, and its result
definitions: the tools, each defined once
permissions: rules of runtimes that let read-only tools run without a question
sdk_server: the tools inside a program with claude-agent-sdk
values: values of the tools
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
