#!/usr/bin/env bash
# A session of Claude Code is moved to Codex by three programs, for `codex resume`. In the first session, a prompt to delete a table was
# rewound, and another one took its place. The second session is the same with a compaction after it, and one more prompt.
# Guess: Codex gets what Claude Code itself would send on after `claude --resume`: without the rewound prompt, and after a compaction only
# its summary and what followed.
# Seen: so it is with claude-session-teleporter 1.3.0. ai-sessions 3.7.4 reads the summary, but in a session without a compaction it hands
# over the rewound prompt and its answer as if they had stood. agent-session-bridge 0.5.0 hands over both, also after a compaction, and
# the summary as one more prompt; it says that it flattens branches. So Codex reads that the old table was deleted, and then that it was kept.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ai-sessions==3.7.4 agent-session-bridge==0.5.0 claude-session-teleporter==1.3.0
cat >seen.py <<'PY'
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

SESSION = "33333333-3333-4333-8333-333333333333"
HOME, BIN = pathlib.Path.cwd() / "home", pathlib.Path(sys.executable).parent
ENVIRON = {"HOME": str(HOME), "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}
SHOP = pathlib.Path.cwd() / "shop"
BEGAN = time.time() - 600


def record(number, parent, **fields):
    return {
        "uuid": f"{number:08}-0000-4000-8000-000000000000", "parentUuid": f"{parent:08}-0000-4000-8000-000000000000" if parent else None,
        "isSidechain": False, "userType": "external", "cwd": str(SHOP), "sessionId": SESSION, "version": "2.1.332", "gitBranch": "main",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(BEGAN + number)), **fields,
    }


def prompt(number, parent, words, **fields):
    return record(number, parent, type="user", message={"role": "user", "content": words}, **fields)


def answer(number, words):
    message = {
        "role": "assistant", "type": "message", "id": f"msg_{number}", "model": "claude-opus-4-5-20251101", "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 100}, "content": [{"type": "text", "text": words}],
    }
    return record(number, number - 1, type="assistant", message=message)


def run(*command):
    subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=True, cwd=SHOP)


def teleported(transcript):
    run(BIN / "claude-sessions", "teleport", transcript, "--to", "codex", "--cwd", SHOP, "--codex-project", "none", "--apply")


def resumed(_):
    run(BIN / "sessions", "--resume", SESSION, "--launch-tool", "codex", "--dry-run")


def bridged(transcript):
    target = HOME / ".codex/sessions/rollout.jsonl"
    target.parent.mkdir(parents=True)
    run(BIN / "session-bridge", "convert", "--from", "claude-code", "--to", "codex", "--no-handshake", "-o", target, transcript)


def messages(rollout):
    """Return the text of all messages that the model would see."""
    entries = [json.loads(line) for line in rollout.read_text().splitlines()]
    payloads = [entry["payload"] for entry in entries if entry["type"] == "response_item"]
    return "\n".join(part["text"] for payload in payloads if payload["type"] == "message" for part in payload["content"])


SHOP.mkdir()
rewound = [
    prompt(1, 0, "use a list"), answer(2, "list used"), prompt(3, 2, "delete the old table"), answer(4, "table deleted"),
    prompt(5, 2, "keep the old table"), answer(6, "table kept"),
]
boundary = record(7, 0, type="system", subtype="compact_boundary", content="Conversation compacted", logicalParentUuid=rewound[-1]["uuid"])
summary = prompt(8, 7, "summary: a list, and the old table", isCompactSummary=True, isVisibleInTranscriptOnly=True)
compacted = [*rewound, boundary, summary, prompt(9, 8, "add a price"), answer(10, "price added")]
for name, records in (("rewound", rewound), ("compacted", compacted)):
    for move in (teleported, resumed, bridged):
        shutil.rmtree(HOME, ignore_errors=True)
        transcript = HOME / ".claude/projects" / str(SHOP).replace("/", "-").replace(".", "-") / f"{SESSION}.jsonl"
        transcript.parent.mkdir(parents=True)
        transcript.write_text("".join(json.dumps(entry) + "\n" for entry in records))
        move(transcript)
        text = messages(*(HOME / ".codex/sessions").rglob("*.jsonl"))
        said = [entry["message"]["content"] for entry in records if "message" in entry]
        words = [content if isinstance(content, str) else content[0]["text"] for content in said]
        print(f"{name}, {move.__name__}: {', '.join(sorted(filter(text.count, words), key=text.index))}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
rewound, teleported: use a list, list used, keep the old table, table kept
rewound, resumed: use a list, list used, delete the old table, table deleted, keep the old table, table kept
rewound, bridged: use a list, list used, delete the old table, table deleted, keep the old table, table kept
compacted, teleported: summary: a list, and the old table, add a price, price added
compacted, resumed: use a list, summary: a list, and the old table, add a price, price added
compacted, bridged: use a list, list used, delete the old table, table deleted, keep the old table, table kept, summary: a list, and the old table, add a price, price added
END
