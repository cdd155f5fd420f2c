"""A desk: a person's sessions of Claude Code in the worktrees of one repository."""

from __future__ import annotations

import json
import time
from pathlib import Path

from git_scene import git, repository
from hooks_scene import run
from records import append, assistant, new_id, user

from session_memory.sessions.runtimes.table import runtime

CLAUDE = runtime("agent-sdk")
CALL = ("Bash", {"command": "pytest -q"})


class Desk:
    """A person with sessions of Claude Code in the worktrees of one repository."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clone = repository(home / "shop", a="1\n")
        self.printed = b""

    def worktree(self, branch: str) -> Path:
        root = self.home / f"wt-{branch.replace('/', '-')}"
        git(self.clone, "worktree", "add", "-q", str(root), "-b", branch)
        return root

    def folder(self, directory: Path) -> Path:
        return Path(CLAUDE.project_dir(str(self.home / ".claude"), str(directory)))

    def working(
        self,
        prompt: str,
        directory: Path | None = None,
        minutes: float = 1,
        call: tuple[str, dict[str, str]] = CALL,
    ) -> Path:
        """Return the transcript of a session that was given a prompt and calls a tool."""
        directory, id, then = directory or self.clone, new_id(), time.time() - 60 * minutes
        path = self.folder(directory) / f"{id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = {"cwd": str(directory), "sessionId": id, "at": then}
        append(path, user(prompt, **fields), assistant(call, **fields))
        return path

    def prompt(self, text: str, directory: Path | None = None, session: str = "") -> str:
        directory, id = directory or self.clone, session or new_id()
        event = {
            "session_id": id,
            "hook_event_name": "UserPromptSubmit",
            "prompt": text,
            "transcript_path": str(self.folder(directory) / f"{id}.jsonl"),
            "cwd": str(directory),
        }
        self.printed = run(event, self.home)
        answer = json.loads(self.printed or b"{}")
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def warnings(self, text: str, directory: Path | None = None, session: str = "") -> list[str]:
        lines = self.prompt(text, directory, session).split("\n")
        return [line for line in lines if line.startswith("! ")]
