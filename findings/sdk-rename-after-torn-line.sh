#!/usr/bin/env bash
# A transcript whose last line is torn (a crash, a full disk), and rename_session() of claude-agent-sdk.
# Guess: the new record begins on a line of its own, since every reader of JSON Lines splits at line feeds.
# Seen (0.2.189): the record follows the torn text on the same line. The SDK's own list shows the new title, for it searches the end
# of the file as text; line by line no JSON has it.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check claude-agent-sdk==0.2.189
cat >seen.py <<'PY'
import json
import os
import pathlib

home = pathlib.Path.cwd() / "home"
os.environ |= {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
import claude_agent_sdk as sdk

session, folder = "33333333-3333-4333-8333-333333333333", home / ".claude/projects/-srv-shop"
folder.mkdir(parents=True)
path = folder / f"{session}.jsonl"
record = {
    "type": "user", "message": {"role": "user", "content": "hello"}, "uuid": "00000000-0000-4000-8000-000000000001",
    "parentUuid": None, "sessionId": session, "cwd": "/srv/shop", "timestamp": "2026-01-12T10:00:00.000Z",
}
path.write_text(json.dumps(record) + "\n" + json.dumps(record)[:40])
sdk.rename_session(session, "A new name", directory="/srv/shop")


def is_json(line):
    try:
        return bool(json.loads(line))
    except ValueError:
        return False


print("the SDK's list:", sdk.list_sessions(directory="/srv/shop")[0].custom_title)
lines = path.read_text().splitlines()
print("lines:", len(lines), "of them JSON with the title:", sum("A new name" in line for line in lines if is_json(line)))
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
the SDK's list: A new name
lines: 2 of them JSON with the title: 0
END
