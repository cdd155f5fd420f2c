"""A clone in which several sessions work: real git and files, and Claude Code's transcripts.

The scene has its own clock: it is `now`, and advances with each tool call. Changed files get its
time, so reports follow from the events of the scene and not from the speed of playing it.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from copy import copy
from pathlib import Path
from random import Random
from typing import Any

from session_memory.awareness.activity.call_collisions import CallSearch
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.updates import open_update
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.settings.homes import Home
from session_memory.sessions.transcripts.entries import Session
from tests.records import stamp

GIT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
LIMIT = 500
FILES = ("src/app.py", "src/db.py", "docs/guide.md", "Makefile", "src/ui/main.ts")


class Clone:
    """A repository on main with a commit of `files`, below `root`, at a time five hours ago."""

    def __init__(self, root: Path, files: tuple[str, ...] = FILES) -> None:
        self.root = root / "clone"
        self.projects = root / ".claude" / "projects" / "-clone"
        self.home = Home(str(self.root), str(root / "place"), str(root / "place"))
        self.state = root / "state"
        self.now = float(int(time.time())) - 5 * 3600
        self.call_seconds = 1.0
        self.sessions: list[Actor] = []
        shutil.copytree(_begun(files), self.root)
        git(self.root, "update-index", "-q", "--refresh")

    def session(self, name: str, worktree: Path | None = None, root: Path | None = None) -> Actor:
        """Return a session that begins now with its first prompt, in a directory of a worktree.

        The worktree is at `root`."""
        actor = Actor(self, name, worktree or self.root, root)
        self.sessions.append(actor)
        actor.say("Go on.")
        actor.prompt()
        return actor

    def shell(self, command: str, directory: Path | None = None) -> int:
        """Run a command line as anybody, and return its exit code.

        Its output files get the current time."""
        before = self._stamps()
        date = f"@{int(self.now)} +0000"
        environment = {**GIT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        where = directory or self.root
        done = subprocess.run(
            ["bash", "-c", command], cwd=where, env=environment, capture_output=True, check=False
        )
        self._settle(before)
        return done.returncode

    def rules(self, text: str) -> None:
        """Has the person's rules for sessions be these."""
        config = Path(self.home.config_file)
        config.parent.mkdir(exist_ok=True)
        config.write_text(f"sessions: {text}\n")

    def write(self, path: Path, text: str) -> None:
        """Writes a file, now."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (self.now, self.now))

    def _files(self) -> list[Path]:
        roots = {actor.root for actor in self.sessions} | {self.root}
        files = []
        for root in roots:
            for directory, folders, names in os.walk(root):
                folders[:] = [name for name in folders if name != ".git"]
                files += [Path(directory, name) for name in names if name != ".git"]
        return files

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        return {
            path: (status.st_ino, status.st_mtime_ns)
            for path in self._files()
            if (status := path.stat())
        }

    def _settle(self, before: dict[Path, tuple[int, int]]) -> None:
        """Give written files the time of the scene, in git's index too."""
        real = time.time() - 3600
        for path, path_stamp in self._stamps().items():
            if before.get(path) != path_stamp and path_stamp[1] > real * 1e9:
                os.utime(path, (self.now, self.now))
        for pattern in (
            "HEAD",
            "logs/HEAD",
            "worktrees/*/HEAD",
            "worktrees/*/logs/HEAD",
            "objects/??/*",
        ):
            for git_file in (self.root / ".git").glob(pattern):
                if git_file.stat().st_mtime > real:
                    os.utime(git_file, (self.now, self.now))
        for root in {actor.root for actor in self.sessions} | {self.root}:
            if (root / ".git").exists():
                git(root, "update-index", "-q", "--refresh")


class Actor:
    """A session in the clone. Each tool call takes a while and really does its work."""

    def __init__(self, clone: Clone, name: str, worktree: Path, root: Path | None = None) -> None:
        """`worktree` is its working directory;

        `root` is its worktree's root, if that is different."""
        self.clone = clone
        self.name = name
        self.worktree = worktree
        self.root = root or worktree
        self.id = str(uuid.uuid4())
        self.path = clone.projects / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._last: str | None = None  # the record that the next one goes on from
        self._append({"type": "custom-title", "customTitle": name, "sessionId": self.id})

    def sub_agent(self, folder: str = ".") -> Actor:
        """Return a sub-agent of this session, which has a transcript of its own.

        It is in `folder` if a workflow starts it."""
        agent = copy(self)
        agent.path = (
            self.path.with_suffix("")
            / "subagents"
            / folder
            / f"agent-{uuid.uuid4().hex[:17]}.jsonl"
        )
        agent.path.parent.mkdir(parents=True, exist_ok=True)
        self._call("Agent", {"description": "As asked", "prompt": "Go on."}, lambda: 0)
        agent.say("Go on.")
        return agent

    @property
    def _own(self) -> OwnSession:
        cursor_file = str(self.clone.state / f"{self.id}.json")
        home = self.clone.home
        return OwnSession(
            self.id, runtime("agent-sdk"), cursor_file, str(self.path), str(self.worktree), home
        )

    @property
    def _others(self) -> list[Session]:
        return [
            Session(other.id, str(other.path)) for other in self.clone.sessions if other is not self
        ]

    def say(self, text: str) -> None:
        """What its person asks for."""
        self._append(self._record("user", {"role": "user", "content": text}))

    def read(self, name: str) -> None:
        self._call("Read", {"file_path": str(self.root / name)}, lambda: 0)

    def edit(self, name: str, text: str, *, fails: bool = False, tool: str = "Edit") -> None:
        """Adds a line to a file with a tool, or is refused."""
        path = self.root / name

        def work() -> int:
            if not fails:
                self.clone.write(path, (path.read_text() if path.exists() else "") + text)
            return int(fails)

        key = "notebook_path" if tool == "NotebookEdit" else "file_path"
        self._call(tool, {key: str(path), "old_string": "", "new_string": text}, work)

    def write(self, name: str, text: str) -> None:
        path = self.root / name

        def work() -> int:
            self.clone.write(path, text)
            return 0

        self._call("Write", {"file_path": str(path), "content": text}, work)

    def bash(self, command: str) -> int:
        """Its exit code."""
        code: list[int] = []

        def work() -> int:
            code.append(self.clone.shell(command, self.worktree))
            return code[0]

        self._call("Bash", {"command": command, "description": "As asked"}, work)
        return code[0]

    def prompt(
        self, text: str = "", *, limit: int = LIMIT, settings: Settings | None = None
    ) -> str:
        """What the hook tells with the next prompt, without its introduction; '' for nothing."""
        clone = self.clone
        clone.now += 1
        settings = settings or clone.home.settings()
        own_session = self._own
        own_session.prompt = text
        observed = Observation(own_session, self._others, settings)
        with open_update(observed, now=clone.now, limit=limit) as update:
            text = update.text or ""
        self.say("Go on.")
        if text:
            attachment = {
                "type": "hook_additional_context",
                "content": [text],
                "hookEvent": "UserPromptSubmit",
            }
            self._append({**self._record("attachment", {}), "attachment": attachment})
        return text

    def before_edit(self, name: str, *, agent: str = "", call_id: str = "") -> str:
        """Return the hook's text for a file that is about to be edited, without its
        introduction."""
        calls = [(str(self.root / name), call_id)]
        search = CallSearch(self._own, calls, agent, self._others, Settings({}), self.clone.now)
        with search.delivery("", LIMIT) as delivery:
            return delivery.text

    def _call(self, tool: str, arguments: dict[str, Any], work: Callable[[], int]) -> None:
        call_id = f"toolu_{uuid.uuid4().hex[:24]}"
        self.open_call(tool, arguments, call_id)
        self.clone.now += self.clone.call_seconds / 2
        has_failed = bool(work())
        self.clone.now += self.clone.call_seconds / 2
        result = {
            "tool_use_id": call_id,
            "type": "tool_result",
            "content": "Done.",
            "is_error": has_failed,
        }
        self._append(self._record("user", {"role": "user", "content": [result]}))

    def open_call(self, tool: str, arguments: dict[str, Any], call_id: str) -> None:
        """A tool call that has no result yet."""
        block = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        message = {
            "id": f"msg_{call_id}",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
        }
        self._append(
            self._record("assistant", {**message, "content": [block], "stop_reason": "tool_use"})
        )

    def _record(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "parentUuid": None,
            "isSidechain": "subagents" in self.path.parts,
            "type": kind,
            "message": message,
            "uuid": str(uuid.uuid4()),
            "timestamp": stamp(self.clone.now),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": str(self.worktree),
            "sessionId": self.id,
            "version": "2.1.329",
            "gitBranch": "main",
        }

    def _append(self, record: dict[str, Any]) -> None:
        if "uuid" in record:
            record["parentUuid"], self._last = self._last, record["uuid"]
        with self.path.open("ab") as file:
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


@functools.cache
def _begun(files: tuple[str, ...]) -> Path:
    """Return a repository to copy: on main, with a commit of `files`, five hours ago."""
    root = Path(tempfile.mkdtemp(prefix="session-memory-clone-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    date = f"@{int(time.time()) - 5 * 3600} +0000"
    begin = "git init -q --template= -b main && git add -A && git commit -q -m begin"
    environment = {**GIT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["sh", "-c", begin], cwd=root, env=environment, check=True)
    return root


def git(directory: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=GIT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def unique(chance: Random) -> str:
    """A line that is in no file yet."""
    return f"line {chance.getrandbits(48):x}\n"
