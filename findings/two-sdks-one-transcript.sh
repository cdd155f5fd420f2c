#!/usr/bin/env bash
# The same sessions of Claude Code, read by claude-agent-sdk for Python and for TypeScript.
# Guess: both give the same sessions and messages, since both have the same functions with the same documentation.
# Seen (Python 0.2.189, TypeScript 0.3.332):
# - a prompt that was typed while the agent worked (`queued_command`) is a message in TypeScript, and missing in Python;
# - a session whose only prompt begins with a tag in small letters (`<div> is not closed`) is missing in TypeScript, from listSessions()
#   and getSessionInfo(), though getSessionMessages() has it; in Python it is listed. `<Button>` is listed by both.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory/home CLAUDE_CONFIG_DIR=$directory/home/.claude
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check claude-agent-sdk==0.2.189
npm install --silent --no-audit --no-fund --omit=optional @anthropic-ai/claude-agent-sdk@0.3.332
cat >write.py <<'PY'
import json
import pathlib

FOLDER = pathlib.Path.home() / ".claude/projects/-srv-shop"
FOLDER.mkdir(parents=True)


def session(name, *said):
    """Write a session of (role or "queued", content) records, each the child of the one before."""
    records = []
    for number, (role, content) in enumerate(said, 1):
        record = {
            "parentUuid": records[-1]["uuid"] if records else None, "isSidechain": False, "userType": "external", "cwd": "/srv/shop",
            "sessionId": f"{name:0>8}-3333-4333-8333-333333333333", "version": "2.1.332", "gitBranch": "main",
            "uuid": f"{number:08}-0000-4000-8000-000000000000", "timestamp": f"2026-11-28T10:00:0{number}.000Z",
        }
        if role == "queued":
            origin = {"commandMode": "prompt", "origin": {"kind": "human"}, "humanTurn": True}
            record |= {"type": "attachment", "attachment": {"type": "queued_command", "prompt": content, **origin}}
        else:
            message = {"role": role, "content": content}
            if role == "assistant":
                message |= {"id": f"msg_{number}", "type": "message", "model": "claude-opus-4-5-20251101", "stop_reason": "end_turn"}
            record |= {"type": role, "message": message}
        records.append(record)
    lines = (json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    (FOLDER / f"{records[0]['sessionId']}.jsonl").write_text("".join(lines))


def text(words):
    return [{"type": "text", "text": words}]


call = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart"}]
session(
    "1", ("user", "rename the table"), ("assistant", call), ("user", result), ("queued", "no, the other table"),
    ("assistant", text("Renamed the other table.")),
)
session("2", ("user", "<div> is not closed, why?"), ("assistant", text("It is, in line 7.")))
session("3", ("user", "<Button> is blue, why?"), ("assistant", text("It inherits the colour.")))
PY
cat >seen.py <<'PY'
import claude_agent_sdk as sdk

listed = sorted(session.session_id for session in sdk.list_sessions(directory="/srv/shop"))
for number in "123":
    session = f"{number:0>8}-3333-4333-8333-333333333333"
    messages = sdk.get_session_messages(session, directory="/srv/shop")
    print("Python", number, "listed" if session in listed else "not listed", len(messages), "messages")
PY
cat >seen.mjs <<'JS'
import { getSessionMessages, listSessions } from "@anthropic-ai/claude-agent-sdk";
const options = { dir: "/srv/shop" };
const listed = (await listSessions(options)).map((session) => session.sessionId);
for (const number of "123") {
	const session = `0000000${number}-3333-4333-8333-333333333333`;
	const messages = await getSessionMessages(session, options);
	console.log("TypeScript", number, listed.includes(session) ? "listed" : "not listed", messages.length, "messages");
}
JS
python3 write.py
{ env/bin/python seen.py; node seen.mjs; } | tee seen
diff seen - <<'END'
Python 1 listed 4 messages
Python 2 listed 2 messages
Python 3 listed 2 messages
TypeScript 1 listed 5 messages
TypeScript 2 not listed 2 messages
TypeScript 3 listed 2 messages
END
