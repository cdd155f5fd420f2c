#!/usr/bin/env bash
# A tool of the MCP Python SDK with two parameters of text, one of them optional: `query: str`, `about: str | None = None`.
# Guess: both get the text that the client sent.
# Seen (mcp 2.3.0): `query` does. For `about` the text is first tried as JSON: `null` arrives as None, and a JSON list or object is
# refused, because it is no text any more. `true`, `5` and `"quoted"` arrive as sent.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0
cat >seen.py <<'PY'
import asyncio
from mcp.server import MCPServer

server = MCPServer("notes")


@server.tool()
def note(query: str, about: str | None = None) -> str:
    return repr((query, about))


async def main():
    for text in ("null", "[1, 2]", '{"a": 1}', "true", "5", '"quoted"'):
        for name in ("query", "about"):
            try:
                answer = await server.call_tool("note", {"query": "-", name: text})
                print(name, text, "->", answer.content[0].text)
            except Exception as error:
                print(name, text, "-> refused:", "valid string" in str(error))


asyncio.run(main())
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
query null -> ('null', None)
about null -> ('-', None)
query [1, 2] -> ('[1, 2]', None)
about [1, 2] -> refused: True
query {"a": 1} -> ('{"a": 1}', None)
about {"a": 1} -> refused: True
query true -> ('true', None)
about true -> ('-', 'true')
query 5 -> ('5', None)
about 5 -> ('-', '5')
query "quoted" -> ('"quoted"', None)
about "quoted" -> ('-', '"quoted"')
END
