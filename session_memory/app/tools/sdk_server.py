"""The tools as a server inside a program that runs agents with claude-agent-sdk.

Only this module imports claude-agent-sdk.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ... import __version__
from .call import call
from .definitions import SERVER, tools_for

if TYPE_CHECKING:
    from anyio import Lock
    from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool

    from .backend import Backend
    from .definitions import Schema, Tool


def sdk_server(backend: Backend) -> McpSdkServerConfig:
    """Return a server with the tools, for `ClaudeAgentOptions`.

        ClaudeAgentOptions(mcp_servers={"session-memory": sdk_server(backend)})

    The agent sees the tools as `mcp__session-memory__list_sessions` and so on. They run in threads,
    because reading files may block. Tools that change something run one at a time, in the order of
    the calls."""
    from anyio import Lock
    from claude_agent_sdk import create_sdk_mcp_server

    changing = Lock()
    return create_sdk_mcp_server(
        SERVER, __version__, [_tool(backend, tool, changing) for tool in tools_for(backend)]
    )


def _tool(backend: Backend, tool: Tool, changing: Lock) -> SdkMcpTool[Any]:
    from anyio import to_thread
    from claude_agent_sdk import SdkMcpTool, ToolAnnotations

    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        async with nullcontext() if tool.is_read_only else changing:
            answered = await to_thread.run_sync(call, backend, tool.name, arguments)
        return {"content": [{"type": "text", "text": answered.text}], "is_error": answered.is_error}

    return SdkMcpTool(
        tool.name,
        tool.description,
        _described(tool.schema),
        answer,
        ToolAnnotations(**tool.annotations),
    )


def _described(schema: Schema) -> Schema:
    """Return a schema that describes the arguments but refuses none.

    Otherwise claude-agent-sdk would refuse a call with its own message, whereas `call` accepts a
    number given as text and ignores arguments that a client adds."""
    properties = {}
    for name, wanted in schema["properties"].items():
        types = [wanted["type"], "number" if wanted["type"] == "string" else "string", "null"]
        choices = f" One of {', '.join(wanted['enum'])}." if "enum" in wanted else ""
        properties[name] = {"type": types, "description": wanted["description"] + choices}
    return {"type": "object", "properties": properties, "required": schema["required"]}
