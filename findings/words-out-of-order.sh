#!/usr/bin/env bash
# An agent sends three pieces of a message over the Agent Client Protocol and then answers the prompt. The client's handler waits for
# 50 ms at the first piece, as one does that opens a file, and then appends each piece to a list.
# Guess: the handler gets one piece after the other, and the call of `prompt` returns after the last, as the agent sent them.
# Seen: both SDKs run the handler for all pieces at once, so the list has them out of order. The Python SDK (0.12.1) returns from
# `prompt` when all handlers are done. The TypeScript SDK (2.4.0) returns before, when the list still lacks the first piece.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check agent-client-protocol==0.12.1
npm install --silent --no-audit --no-fund @agentclientprotocol/sdk@2.4.0
cat >agent.py <<'PY'
import json
import sys

RESULTS = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "1"}, "session/prompt": {"stopReason": "end_turn"}}
for line in sys.stdin:
    request = json.loads(line)
    pieces = ("first ", "second ", "third ") if request["method"] == "session/prompt" else ()
    for piece in pieces:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "1", "update": update}}))
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]]}), flush=True)
PY
cat >seen.py <<'PY'
import asyncio
import sys

import acp


class Client(acp.Client):
    def __init__(self):
        self.pieces = []

    async def session_update(self, session_id, update, **_):
        if update.content.text == "first ":
            await asyncio.sleep(0.05)
        self.pieces.append(update.content.text)


async def main():
    client = Client()
    async with acp.spawn_agent_process(client, sys.executable, "agent.py") as (agent, _):
        await agent.initialize(protocol_version=1)
        await agent.new_session(cwd="/srv/shop", mcp_servers=[])
        await agent.prompt(session_id="1", prompt=[acp.text_block("hello")])
        print("Python, after the prompt:", "".join(client.pieces).strip())
        await asyncio.sleep(1)
        print("Python, a second later:", "".join(client.pieces).strip())


asyncio.run(main())
PY
cat >seen.mjs <<'JS'
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const { stdin, stdout } = spawn("python3", ["agent.py"]);
const { agent, client } = acp.methods;
const pieces = [];
const app = acp.client({ name: "reader" }).onNotification(client.session.update, async ({ params }) => {
	const { text } = params.update.content;
	if (text === "first ") await pause(50);
	pieces.push(text);
});
await app.connectWith(acp.ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout)), async (connection) => {
	await connection.request(agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
	await connection.request(agent.session.new, { cwd: "/srv/shop", mcpServers: [] });
	await connection.request(agent.session.prompt, { sessionId: "1", prompt: [{ type: "text", text: "hello" }] });
	console.log("TypeScript, after the prompt:", pieces.join("").trim());
	await pause(1000);
	console.log("TypeScript, a second later:", pieces.join("").trim());
});
stdin.end();
JS
{ env/bin/python seen.py; node seen.mjs; } | tee seen
diff seen - <<'END'
Python, after the prompt: second third first
Python, a second later: second third first
TypeScript, after the prompt: second third
TypeScript, a second later: second third first
END
