#!/usr/bin/env bash
# Claude Code records `/plan-work make the parser accept umlauts` as one user message with <command-name> and <command-args>.
# Guess: programs that read transcripts show these words, since a person typed them, and take them for the session's title.
# Seen: claude-agent-sdk 0.2.189 gives the next prompt as the first one; if there is none, `/plan-work` without the words.
# claude-code-log 1.7.0 leaves the message out of its HTML and Markdown, also with `--depth user`, "only user prompts"; `--depth hook`
# shows it. agentsview 0.46.1 keeps the message, but takes the next prompt for the session's first.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check claude-agent-sdk==0.2.189 claude-code-log==1.7.0 agentsview==0.46.1
cat >seen.py <<'PY'
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

home = pathlib.Path.cwd() / "home"
session, folder = "33333333-3333-4333-8333-333333333333", home / ".claude/projects/-srv-shop"
transcript = folder / f"{session}.jsonl"
WORDS = "make the parser accept umlauts"
TYPED = f"<command-message>plan-work</command-message>\n<command-name>/plan-work</command-name>\n<command-args>{WORDS}</command-args>"


def record(number, role, content):
    message = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "model": "claude", "stop_reason": "end_turn"}
        message |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    return {
        "type": role, "message": message, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number > 1 else None,
        "isSidechain": False, "userType": "external", "cwd": "/srv/shop", "sessionId": session, "version": "2.1.332",
        "gitBranch": "main", "timestamp": f"2026-11-28T10:00:0{number}.000Z",
    }


folder.mkdir(parents=True)
said = [("user", TYPED), ("assistant", [{"type": "text", "text": "I will."}]), ("user", "now the tests")]
lines = [json.dumps(record(number, *words)) + "\n" for number, words in enumerate(said, 1)]
environ = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", "AGENTSVIEW_DATA_DIR": str(home / "agentsview")}
bin = pathlib.Path(sys.executable).parent


def run(*command):
    subprocess.run([bin / command[0], *command[1:]], env=environ, capture_output=True, check=True)


sdk = "import claude_agent_sdk as s; print(s.list_sessions(directory='/srv/shop')[0].first_prompt)"
for count in (2, 3):
    transcript.write_text("".join(lines[:count]))
    shown = subprocess.run([sys.executable, "-c", sdk], env=environ, capture_output=True, text=True, check=True).stdout
    print(f"claude-agent-sdk first_prompt of {count} messages:", shown.strip())
for name, depth in (("tool", "tool"), ("user", "user"), ("hook", "hook")):
    for form in ("md", "html"):
        run("claude-code-log", "-o", f"{name}.{form}", "--depth", depth, str(transcript))
        print("claude-code-log", depth, form, "has the words:", WORDS in pathlib.Path(f"{name}.{form}").read_text())
run("agentsview", "sync")
run("agentsview", "daemon", "stop")
database = sqlite3.connect(home / "agentsview/sessions.db")
print("agentsview first_message:", database.execute("SELECT first_message FROM sessions").fetchone()[0])
print("agentsview message:", database.execute("SELECT content FROM messages ORDER BY ordinal").fetchone()[0])
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
claude-agent-sdk first_prompt of 2 messages: /plan-work
claude-agent-sdk first_prompt of 3 messages: now the tests
claude-code-log tool md has the words: False
claude-code-log tool html has the words: False
claude-code-log user md has the words: False
claude-code-log user html has the words: False
claude-code-log hook md has the words: True
claude-code-log hook html has the words: True
agentsview first_message: now the tests
agentsview message: /plan-work make the parser accept umlauts
END
