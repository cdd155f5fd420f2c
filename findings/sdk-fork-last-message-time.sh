#!/usr/bin/env bash
# fork_session() of claude-agent-sdk copies a session's records into a new file.
# Guess: each copy keeps the time of its original, or all get the time of the fork.
# Seen (0.2.189): all copies keep their times, except the last: it has the time of the fork. A reader that takes what is newer than
# its last look for news sees the last answer as said just now, in a session where nobody said anything.
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
records = []
for number, role in enumerate(("user", "assistant", "user", "assistant")):
    content = f"message {number}" if role == "user" else [{"type": "text", "text": f"message {number}"}]
    uuid = f"00000000-0000-4000-8000-00000000000{number}"
    records.append({
        "type": role, "message": {"role": role, "content": content}, "uuid": uuid, "sessionId": session, "cwd": "/srv/shop",
        "parentUuid": records[-1]["uuid"] if records else None, "timestamp": f"2026-01-12T10:00:0{number}.000Z",
    })
(folder / f"{session}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
fork = sdk.fork_session(session, directory="/srv/shop").session_id
for line in (folder / f"{fork}.jsonl").read_text().splitlines():
    record = json.loads(line)
    if "message" in record:
        print(record["type"], "keeps its time:", record["timestamp"].startswith("2026-01-12"))
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
user keeps its time: True
assistant keeps its time: True
user keeps its time: True
assistant keeps its time: False
END
