#!/usr/bin/env bash
# Output tokens of the same valid transcripts of Claude Code, counted by three programs: agentsview 0.46.1, claude-monitor 4.0.0 and
# llm-usage-metrics 0.8.0.
# Guess: all three agree, since they read the same field.
# Seen:
# - an answer that is streamed in records of 3, 3 and 500 tokens with one message id: 500, but 3 by claude-monitor (the first counts);
# - a fork that copied an answer of 100 tokens and added one of 7: 107, but 207 by llm-usage-metrics (a copy counts again);
# - an answer of 20 tokens for which an advisor wrote 70,000 (`usage.iterations`): 20 by all three;
# - one answer of 1,000 tokens in three records with a request id and no message id: 3,000 by all three.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check agentsview==0.46.1 claude-monitor==4.0.0
npm install --silent --no-audit --no-fund llm-usage-metrics@0.8.0
cat >seen.py <<'PY'
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

SESSION, FORK = "44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"
HOME, BIN = pathlib.Path.cwd() / "home", pathlib.Path(sys.executable).parent
ENVIRON = {"HOME": str(HOME), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "AGENTSVIEW_DATA_DIR": str(HOME / "data")}
BEGAN = time.time() - 600
READER = "from claude_monitor.data.reader import load_usage_entries as load; print(sum(e.output_tokens for e in load(data_path={!r})[0]))"


def answer(number, tokens, message, session, **usage):
    content = {
        "role": "assistant", "type": "message", "model": "claude-opus-4-5-20251101", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 10, "output_tokens": tokens, **usage},
        **({"id": message} if message else {}),
    }
    return {
        "type": "assistant", "message": content, "uuid": f"u{number}", "parentUuid": None, "isSidechain": False, "cwd": "/srv/shop",
        "sessionId": session, "version": "2.1.332", "gitBranch": "main", "userType": "external", "requestId": f"req_{message or 'm1'}",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(BEGAN + number)),
    }


ADVISED = [
    {"type": "message", "input_tokens": 10, "output_tokens": 20},
    {"type": "advisor_message", "model": "claude-opus-4-5-20251101", "input_tokens": 1000, "output_tokens": 70000},
]
SCENES = {
    "streamed": {SESSION: [answer(number, tokens, "m1", SESSION) for number, tokens in ((1, 3), (2, 3), (3, 500))]},
    "forked": {SESSION: [answer(1, 100, "m1", SESSION)], FORK: [answer(1, 100, "m1", FORK), answer(2, 7, "m2", FORK)]},
    "advised": {SESSION: [answer(1, 20, "m1", SESSION, iterations=ADVISED)]},
    "without message id": {SESSION: [answer(number, 1000, "", SESSION) for number in (1, 2, 3)]},
}


def run(*command):
    return subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=True).stdout


for name, sessions in SCENES.items():
    shutil.rmtree(HOME, ignore_errors=True)
    folder = HOME / ".claude/projects/-srv-shop"
    folder.mkdir(parents=True)
    for session, records in sessions.items():
        (folder / f"{session}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    run(BIN / "agentsview", "sync")
    agentsview = json.loads(run(BIN / "agentsview", "usage", "daily", "--json"))["totals"]["outputTokens"]
    run(BIN / "agentsview", "daemon", "stop")
    monitor = int(run(sys.executable, "-c", READER.format(str(HOME / ".claude/projects"))))
    metrics = json.loads(run("node", "node_modules/llm-usage-metrics/dist/index.js", "daily", "--json", "--pricing-offline"))
    total = metrics["data"][0]["outputTokens"]
    print(f"{name}: agentsview {agentsview}, claude-monitor {monitor}, llm-usage-metrics {total}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
streamed: agentsview 500, claude-monitor 3, llm-usage-metrics 500
forked: agentsview 107, claude-monitor 107, llm-usage-metrics 207
advised: agentsview 20, claude-monitor 20, llm-usage-metrics 20
without message id: agentsview 3000, claude-monitor 3000, llm-usage-metrics 3000
END
