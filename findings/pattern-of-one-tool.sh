#!/usr/bin/env bash
# An MCP server with two tools, by the Python SDK. The result of one has a field with a pattern that is valid in Python, where any
# sign may be escaped (`\#`). A client of the TypeScript SDK asks which tools there are.
# Guess: the client lists both, and at most a call of that one tool fails.
# Seen (mcp 2.3.0, @modelcontextprotocol/sdk 1.32.2): listTools raises for the whole server, because the client compiles the output
# schema of every tool as a JavaScript pattern with the flag u. Both tools can be called all the same; a client in Python lists both.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env; env/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0
npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2
cat >server.py <<'PY'
from typing import Annotated

from mcp.server import MCPServer
from pydantic import BaseModel, Field

server = MCPServer("shop")


class Ticket(BaseModel):
    key: Annotated[str, Field(pattern=r"^[A-Z]+\#[0-9]+$")]


class Note(BaseModel):
    text: str


@server.tool()
def last_ticket() -> Ticket:
    return Ticket(key="SHOP#1")


@server.tool()
def last_note() -> Note:
    return Note(text="closed on Monday")


server.run()
PY
cat >client.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const client = new Client({ name: "reader", version: "1" });
await client.connect(new StdioClientTransport({ command: "env/bin/python", args: ["server.py"], stderr: "ignore" }));
const tried = async (what, call) => {
  try { console.log(`${what}: ${JSON.stringify(await call())}`); } catch (error) { console.log(`${what}: ${error.message}`); }
};
await tried("TypeScript lists", async () => (await client.listTools()).tools.map((tool) => tool.name));
for (const name of ["last_note", "last_ticket"])
  await tried(`TypeScript calls ${name}`, async () => (await client.callTool({ name, arguments: {} })).structuredContent);
await client.close();
JS
cat >client.py <<'PY'
import asyncio

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    async with stdio_client(StdioServerParameters(command="env/bin/python", args=["server.py"])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            print("Python lists:", *sorted(tool.name for tool in (await session.list_tools()).tools))


asyncio.run(main())
PY
{ node client.mjs; env/bin/python client.py 2>/dev/null; } | tee seen
diff seen - <<'END'
TypeScript lists: Invalid regular expression: /^[A-Z]+\#[0-9]+$/u: Invalid escape
TypeScript calls last_note: {"text":"closed on Monday"}
TypeScript calls last_ticket: {"key":"SHOP#1"}
Python lists: last_note last_ticket
END
