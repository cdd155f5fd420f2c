#!/usr/bin/env bash
# Two tools of an MCP server. The result of `pages` has two texts; the result of `report` has a text, a file as an embedded resource, and a
# link to a file. Four agent libraries call both.
# Guess: all parts reach the agent, as text or in the library's own form; at worst a link becomes a line of text.
# Seen: so it is with openai-agents 0.24.0. strands-agents 1.62.0 drops the link. DSPy 3.4.1 drops the file and the link, because there is
# text. smolagents 1.26.0 keeps only the first part of each result, so the second page is gone too; it logs a warning. No error anywhere.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mcp[ws]==1.30.0' openai-agents==0.24.0 strands-agents==1.62.0 dspy==3.4.1 \
    smolagents==1.26.0 mcpadapt==0.1.19
cat >server.py <<'PY'
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents, Tool

server = Server("shop")
FILE = TextResourceContents(uri="file:///total.csv", text="total,12", mimeType="text/csv")
RESULTS = {
    "pages": [TextContent(type="text", text="page 1"), TextContent(type="text", text="page 2")],
    "report": [
        TextContent(type="text", text="the report"), EmbeddedResource(type="resource", resource=FILE),
        ResourceLink(type="resource_link", uri="file:///orders.csv", name="orders.csv"),
    ],
}


@server.list_tools()
async def list_tools():
    return [Tool(name=name, description=name, inputSchema={"type": "object", "properties": {}}) for name in RESULTS]


@server.call_tool()
async def call_tool(name, arguments):
    return RESULTS[name]


async def main():
    async with stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options())


anyio.run(main)
PY
cat >seen.py <<'PY'
import asyncio
import sys
import warnings

from mcp import ClientSession, StdioServerParameters, stdio_client

warnings.simplefilter("ignore")
SERVER = StdioServerParameters(command=sys.executable, args=["server.py"])
PARTS = {"pages": ["page 1", "page 2"], "report": ["the report", "total,12", "orders.csv"]}


async def openai_agents():
    from agents import RunContextWrapper
    from agents.mcp import MCPServerStdio, MCPUtil

    async with MCPServerStdio(params={"command": SERVER.command, "args": SERVER.args}) as server:
        return {tool.name: await MCPUtil.invoke_mcp_tool(server, tool, RunContextWrapper(None), "{}") for tool in await server.list_tools()}


def strands():
    from strands.tools.mcp import MCPClient

    with MCPClient(lambda: stdio_client(SERVER)) as client:
        return {name: client.call_tool_sync("1", name, {})["content"] for name in PARTS}


async def dspy():
    from dspy import Tool

    async with stdio_client(SERVER) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return {tool.name: await Tool.from_mcp_tool(session, tool).acall() for tool in (await session.list_tools()).tools}


def smolagents():
    from smolagents import MCPClient

    with MCPClient(SERVER, structured_output=False) as tools:
        return {tool.name: tool() for tool in tools}


for library in (openai_agents, strands, dspy, smolagents):
    results = library()
    results = asyncio.run(results) if asyncio.iscoroutine(results) else results
    for name, parts in PARTS.items():
        print(f"{library.__name__}: {name}: {', '.join(part for part in parts if part in str(results[name]))}")
PY
env/bin/python seen.py 2>log | tee seen
diff seen - <<'END'
openai_agents: pages: page 1, page 2
openai_agents: report: the report, total,12, orders.csv
strands: pages: page 1, page 2
strands: report: the report, total,12
dspy: pages: page 1, page 2
dspy: report: the report
smolagents: pages: page 1
smolagents: report: the report
END
