#!/usr/bin/env bash
# The events of a run of an agent, in AG-UI, the protocol between agents and user interfaces. The client of AG-UI makes messages of the
# events as they came, and of the same events after `compactEvents`, which joins the pieces of each message before a run is stored.
# Guess: the messages are the same, in the same order.
# Seen (@ag-ui/client 1.0.0): `compactEvents` puts each message and each call of a tool at the place of its end, and all other events that
# came during it behind it. So
# - a tool that is called in the middle of an answer is called and has its result before the whole answer;
# - of two agents that speak at the same time, the one that ended first spoke first;
# - a snapshot of all messages, sent during a message, is applied after it, and the rest of this message is lost.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
npm install --silent --no-audit --no-fund @ag-ui/client@1.0.0 rxjs@7.8.1
cat >seen.mjs <<'JS'
import { AbstractAgent, compactEvents } from "@ag-ui/client";
import { from } from "rxjs";

class Replay extends AbstractAgent {
	constructor(events) {
		super({ threadId: "thread" });
		this.events = events;
	}
	run() {
		return from(this.events);
	}
}

const begin = (messageId) => ({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" });
const say = (messageId, delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
const end = (messageId) => ({ type: "TEXT_MESSAGE_END", messageId });
const tool = [
	{ type: "TOOL_CALL_START", toolCallId: "call", toolCallName: "read" },
	{ type: "TOOL_CALL_ARGS", toolCallId: "call", delta: "{}" },
	{ type: "TOOL_CALL_END", toolCallId: "call" },
	{ type: "TOOL_CALL_RESULT", toolCallId: "call", messageId: "result", content: "12 lines" },
];
const prompt = { id: "prompt", role: "user", content: "Look." };
const snapshot = { type: "MESSAGES_SNAPSHOT", messages: [prompt, { id: "1", role: "assistant", content: "I looked," }] };
const scenes = {
	tool: [begin("1"), say("1", "I look: "), ...tool, say("1", "it is short."), end("1")],
	"two agents": [begin("1"), begin("2"), say("2", "Second."), say("1", "First."), end("2"), end("1")],
	snapshot: [begin("1"), say("1", "I looked,"), snapshot, say("1", " it is short."), end("1")],
};
for (const [name, events] of Object.entries(scenes)) {
	for (const [how, change] of [["as they came", (all) => all], ["compacted", compactEvents]]) {
		const ids = { threadId: "thread", runId: "run" };
		const agent = new Replay(change([{ type: "RUN_STARTED", ...ids }, ...structuredClone(events), { type: "RUN_FINISHED", ...ids }]));
		await agent.runAgent({ runId: "run" });
		const texts = agent.messages.map((message) => message.content ?? `calls ${message.toolCalls[0].function.name}`);
		console.log(`${name}, ${how}: ${texts.join(" | ")}`);
	}
}
JS
node seen.mjs | tee seen
diff seen - <<'END'
tool, as they came: I look: it is short. | calls read | 12 lines
tool, compacted: calls read | 12 lines | I look: it is short.
two agents, as they came: First. | Second.
two agents, compacted: Second. | First.
snapshot, as they came: I looked, it is short. | Look.
snapshot, compacted: I looked, | Look.
END
