#!/usr/bin/env bash
# A prompt that was rewound (Esc Esc) in Claude Code: the records of the abandoned branch stay in the transcript, and the next
# prompt has the same parent. Each answer here is 100 output tokens.
# Guess: readers leave out the abandoned branch, as `claude --resume` does, but their costs count its answers, which were paid.
# Seen: claude-agent-sdk 0.2.189 leaves it out and claude-code-log 1.7.0 shows it. agentsview 0.46.1 drops an abandoned branch of one
# to three prompts, from its messages and its costs (200 of 300 tokens); after four prompts it keeps the abandoned branch in the
# session, and what was said since is a new one.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check claude-agent-sdk==0.2.189 claude-code-log==1.7.0 agentsview==0.46.1
cat >seen.py <<'PY'
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

SESSION = "33333333-3333-4333-8333-333333333333"
HOME, BIN = pathlib.Path.cwd() / "home", pathlib.Path(sys.executable).parent
ENVIRON = {"HOME": str(HOME), "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", "AGENTSVIEW_DATA_DIR": str(HOME / "data")}
SDK = f"import claude_agent_sdk as s; print(len(s.get_session_messages('{SESSION}', directory='/srv/shop')))"
BEGAN = time.time() - 600


def uuid(number):
    return f"{number:08}-0000-4000-8000-000000000000"


def exchange(number, parent, words):
    """A prompt and its answer, as records `number` and `number + 1`."""
    answer = {
        "role": "assistant", "type": "message", "id": f"msg_{number}", "model": "claude-opus-4-5-20251101",
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 100},
        "content": [{"type": "text", "text": f"Answer to: {words}"}],
    }
    for offset, message in enumerate(({"role": "user", "content": words}, answer)):
        yield {
            "type": message["role"], "message": message, "uuid": uuid(number + offset), "isSidechain": False,
            "parentUuid": uuid(number) if offset else uuid(parent) if parent else None, "userType": "external",
            "cwd": "/srv/shop", "sessionId": SESSION, "version": "2.1.332", "gitBranch": "main",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(BEGAN + number + offset)),
        }


def run(*command):
    return subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=True).stdout


for abandoned in (1, 3, 4):
    shutil.rmtree(HOME, ignore_errors=True)
    transcript = HOME / f".claude/projects/-srv-shop/{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    records = list(exchange(1, 0, "use a list"))
    for turn in range(abandoned):
        records += exchange(3 + 2 * turn, 2 + 2 * turn, f"delete the old table, part {turn}")
    records += exchange(3 + 2 * abandoned, 2, "keep the old table")
    transcript.write_text("".join(json.dumps(record) + "\n" for record in records))
    sdk = int(run(sys.executable, "-c", SDK))
    run(BIN / "claude-code-log", "-o", "log.md", str(transcript))
    log = pathlib.Path("log.md").read_text().count("> Answer to")
    run(BIN / "agentsview", "sync")
    tokens = json.loads(run(BIN / "agentsview", "usage", "daily", "--json"))["totals"]["outputTokens"]
    run(BIN / "agentsview", "daemon", "stop")
    with sqlite3.connect(HOME / "data/sessions.db") as database:
        counts = [count for (count,) in database.execute("SELECT message_count FROM sessions ORDER BY started_at")]
    print(f"{abandoned} prompts abandoned, {len(records)} messages: sdk {sdk}, claude-code-log {2 * log}, agentsview {counts},", end=" ")
    print(f"{tokens} of {50 * len(records)} tokens")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
1 prompts abandoned, 6 messages: sdk 4, claude-code-log 6, agentsview [4], 200 of 300 tokens
3 prompts abandoned, 10 messages: sdk 4, claude-code-log 10, agentsview [4], 200 of 500 tokens
4 prompts abandoned, 12 messages: sdk 4, claude-code-log 12, agentsview [10, 2], 600 of 600 tokens
END
