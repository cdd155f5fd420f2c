"""A plain user of Claude Code, and the hooks as the runtime starts them: a process with a clean environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from records import new_id, show_told, write

ROOT = Path(__file__).resolve().parents[1]


def run(event, home, script="user_prompt_submit", preexec_fn=None, program=ROOT, arguments=(), **environment):
    """The hook's stdout; whatever happens it must end well and quietly. The transcript shows what it told."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", program / "hooks" / f"{script}.py", *arguments],
        input=event if isinstance(event, bytes) else json.dumps(event).encode(),
        capture_output=True,
        env={"HOME": str(home), "CLAUDE_PID": "4711", **environment},
        timeout=60,
        preexec_fn=preexec_fn,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    own_path = event.get("transcript_path") if isinstance(event, dict) else None
    if isinstance(own_path, str) and Path(own_path).is_file():
        show_told(Path(own_path), done.stdout)
    return done.stdout


def told(output):
    answer = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    assert len(answer["additionalContext"]) <= 500
    return answer["additionalContext"]


class PlainUser:
    """A plain Claude Code user with one project."""

    def __init__(self, root):
        self.root = root
        self.config_dir = root / ".claude"
        self.project_dir = self.config_dir / "projects" / "-srv-agent"
        self.project_dir.mkdir(parents=True)
        self.place = root / ".session-memory"
        self.state_dir = self.place / "state"
        self.session_id = new_id()

    def session(self, *records, project="-srv-agent"):
        return write(self.config_dir / "projects" / project / f"{new_id()}.jsonl", *records)

    def event(self, **fields):
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.project_dir / f"{self.session_id}.jsonl"),
            "cwd": "/srv/agent",
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
            **fields,
        }

    def run(self, script="user_prompt_submit", program=ROOT, **fields):
        return run(self.event(**fields), self.root, script, program=program)

    def log(self):
        path = self.state_dir / "hook.log"
        return path.read_text().splitlines() if path.exists() else []

    def config(self, text):
        self.place.mkdir(exist_ok=True)
        (self.place / "config.yaml").write_text(text)
