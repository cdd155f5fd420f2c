"""Somebody who uses several runtimes in one repository, and what each of them is told there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from git_scene import repository
from hooks_scene import run, told
from opencode_scene import OpenCodeDatabase
from records import (
    append,
    assistant,
    codex_exchange,
    codex_item,
    codex_line,
    codex_message,
    copilot_exchange,
    copilot_message,
    copilot_start,
    droid_exchange,
    droid_start,
    exchange,
    gemini_exchange,
    gemini_message,
    kimi_exchange,
    kimi_start,
    lines,
    new_id,
    qwen_exchange,
    user,
    write,
)

from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.table import runtime

READ, EDIT, SHELL = "read", "edit", "command"
WAYS = (EDIT, SHELL)
# The tools of each family of runtimes, and the key of what is given to them; Codex has one tool for
# scripts.
TOOLS = {
    "atif": {READ: ("read_file", "path"), EDIT: ("edit_file", "path"), SHELL: ("bash", "command")},
    "claude-code": {
        READ: ("Read", "file_path"),
        EDIT: ("Edit", "file_path"),
        SHELL: ("Bash", "command"),
    },
    "cline": {
        READ: ("read_files", "files"),
        EDIT: ("editor", "path"),
        SHELL: ("run_commands", "commands"),
    },
    "copilot": {READ: ("view", "path"), EDIT: ("edit", "path"), SHELL: ("bash", "command")},
    "droid": {
        READ: ("Read", "file_path"),
        EDIT: ("Edit", "file_path"),
        SHELL: ("Execute", "command"),
    },
    "gemini": {
        READ: ("read_file", "file_path"),
        EDIT: ("replace", "file_path"),
        SHELL: ("run_shell_command", "command"),
    },
    "openclaw": {READ: ("read", "path"), EDIT: ("edit", "path"), SHELL: ("exec", "command")},
    "hermes": {
        READ: ("read_file", "path"),
        EDIT: ("patch", "path"),
        SHELL: ("terminal", "command"),
    },
    "kimi": {READ: ("Read", "path"), EDIT: ("Edit", "path"), SHELL: ("Bash", "command")},
    "omp": {READ: ("read", "path"), EDIT: ("edit", "path"), SHELL: ("bash", "command")},
    "opencode": {
        READ: ("read", "filePath"),
        EDIT: ("edit", "filePath"),
        SHELL: ("bash", "command"),
    },
    "pi": {READ: ("read", "path"), EDIT: ("edit", "path"), SHELL: ("bash", "command")},
    "qwen-code": {
        READ: ("read_file", "file_path"),
        EDIT: ("edit", "file_path"),
        SHELL: ("run_shell_command", "command"),
    },
}


Row = TypeVar("Row")


def row_of(table: Mapping[str, Row], runtime: Runtime) -> Row:
    """The runtime's row in a table, or that of the runtime that it extends."""
    return table.get(runtime.name) or table[runtime.family()]


class ClaudeReader:
    """A session of Claude Code in a project, which has read a file of it."""

    def __init__(self, home: Path, project: Path, file: Path) -> None:
        self.home, self.project, self.file = home, project, file
        self.id = new_id()
        self.path = home / ".claude" / "projects" / encode_cwd(str(project)) / f"{self.id}.jsonl"
        read = ("Read", {"file_path": str(file)})
        write(self.path, *exchange("look at it", read, cwd=str(project), at=time.time() - 600))

    @classmethod
    def two_of_notes(cls, home: Path, project: Path) -> tuple[ClaudeReader, ClaudeReader]:
        """Two sessions that have read `notes.txt`, which is long unchanged."""
        notes = project / "notes.txt"
        notes.write_text("alpha\nbeta\n")
        os.utime(notes, (1_700_000_000, 1_700_000_000))
        return cls(home, project, notes), cls(home, project, notes)

    def prompt(self) -> str:
        """What it is told with a prompt, as JSON."""
        return run(self._event("UserPromptSubmit", prompt="go on"), self.home).decode()

    def about_to_edit(self) -> str:
        """What it is told before it edits the file, as JSON."""
        given = {"file_path": str(self.file), "old_string": "a", "new_string": "b"}
        event = self._event("PreToolUse", tool_name="Edit", tool_use_id=new_id(), tool_input=given)
        return run(event, self.home, "pre_tool_use").decode()

    def _event(self, name: str, **fields: object) -> dict[str, object]:
        where = {"transcript_path": str(self.path), "cwd": str(self.project)}
        return {"session_id": self.id, "hook_event_name": name, **where, **fields}


class Person:
    """Somebody with a repository, who uses several runtimes in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.app = repository(root / "src" / "app", src__app="1\n")
        self.ids = {
            "claude": new_id(),
            "codex": new_id(),
            "qwen": new_id(),
            "copilot": new_id(),
            "gemini": new_id(),
        }
        for directory in (".claude", ".codex", ".qwen", ".copilot"):
            (root / directory).mkdir()
        self._databases: dict[str, OpenCodeDatabase] = {}
        self.opencode = self.database_of(runtime("opencode"))
        self.opencode_id = self.opencode.session(self.app)

    def database_of(self, fork: Runtime) -> OpenCodeDatabase:
        """The database of OpenCode or of a fork; no two sessions have the same id."""
        if fork.name not in self._databases:
            data_dir = Path(fork.config_dir({"HOME": str(self.root)}))
            last = 1_000_000 * len(self._databases)
            self._databases[fork.name] = OpenCodeDatabase(data_dir, last=last)
        return self._databases[fork.name]

    def claude_session(self, directory: Path, question: str) -> Path:
        path = self.root / ".claude" / "projects" / encode_cwd(str(directory)) / f"{new_id()}.jsonl"
        return write(path, *exchange(question, "Done.", cwd=str(directory)))

    def claude_edits(self) -> None:
        """A session of Claude Code changes the file that other sessions have read."""
        path, cwd = self.claude_session(self.app, "mend it"), str(self.app)
        given = {"file_path": self.edited, "old_string": "1", "new_string": "2"}
        call = {"type": "tool_use", "id": "e1", "name": "Edit", "input": given}
        append(path, assistant(call, cwd=cwd))
        Path(self.edited).write_text("2\n")
        result = {"tool_use_id": "e1", "type": "tool_result", "content": "Done."}
        append(path, user([result], cwd=cwd))

    def codex_session(
        self, directory: Path, question: str, *, session_id: str = "", parent: str = ""
    ) -> Path:
        session_id = session_id or new_id()
        header: dict[str, Any] = {
            "id": session_id,
            "session_id": parent or session_id,
            "cwd": str(directory),
        }
        header["thread_source"] = "subagent" if parent else "user"
        header["base_instructions"] = {"text": "Be kind. " * 2500}  # as long as they are
        path = self.rollout(session_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        at = time.time() - 60
        append(path, codex_line("session_meta", header, at=at))
        append(path, *codex_exchange(question, "It is done.", cwd=str(directory), at=at))
        return path

    def rollout(self, session_id: str) -> Path:
        day = datetime.now().strftime("%Y/%m/%d")
        return (
            self.root
            / ".codex"
            / "sessions"
            / day
            / f"rollout-2026-11-20T10-00-00-{session_id}.jsonl"
        )

    def read_in_claude(self) -> None:
        """A session of Claude Code has read `src/app.py`, which was changed since."""
        own = (
            self.root
            / ".claude"
            / "projects"
            / encode_cwd(str(self.app))
            / f"{self.ids['claude']}.jsonl"
        )
        read = ("Read", {"file_path": self.edited})
        write(own, *exchange("look at it", read, cwd=str(self.app), at=time.time() - 600))
        Path(self.edited).write_text("2\n")

    @property
    def edited(self) -> str:
        """A file of the repository."""
        return str(self.app / "src" / "app.py")

    def prompt_in_claude(self, directory: Path) -> str:
        folder = self.root / ".claude" / "projects" / encode_cwd(str(directory))
        event = {
            "session_id": self.ids["claude"],
            "transcript_path": str(folder / f"{self.ids['claude']}.jsonl"),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
        }
        return text_in(run(event, self.root))

    def prompt_in_codex(self, directory: Path, **fields: str) -> str:
        event = {
            "session_id": self.ids["codex"],
            "turn_id": new_id(),
            "transcript_path": str(self.rollout(self.ids["codex"])),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "model": "gpt-6.1-sol",
            "permission_mode": "default",
            "prompt": "hi",
            **fields,
        }
        self.rollout(self.ids["codex"]).parent.mkdir(parents=True, exist_ok=True)
        text = text_in(run(event, self.root, arguments=["codex"]))
        if text:
            write(self.rollout(self.ids["codex"]), codex_message("developer", text))
        return text

    def qwen_session(self, directory: Path, question: str) -> Path:
        path = self.chats(directory) / f"{new_id()}.jsonl"
        return write(
            path, *qwen_exchange(question, "Done.", cwd=str(directory), at=time.time() - 60)
        )

    def chats(self, directory: Path) -> Path:
        return self.root / ".qwen" / "projects" / encode_cwd(str(directory)) / "chats"

    def prompt_in_qwen(self, directory: Path, prompt: str = "hi") -> str:
        own = self.chats(directory) / f"{self.ids['qwen']}.jsonl"
        event = {
            "session_id": self.ids["qwen"],
            "transcript_path": str(own),
            "cwd": str(directory),
            "hook_event_name": "UserPromptSubmit",
            "prompt_id": new_id(),
            "prompt": prompt,
        }
        text = text_in(run(event, self.root))
        if text:
            write(own, *qwen_exchange("hi", "ok"))
            own.write_bytes(
                own.read_bytes().replace(
                    b'"message"', b'"systemPayload":' + payload(text) + b',"message"', 1
                )
            )
        return text

    def copilot_session(self, directory: Path, question: str, *, session_id: str = "") -> Path:
        session_id = session_id or new_id()
        start = copilot_start(session_id, str(directory), at=time.time() - 61)
        return write(
            self.events(session_id),
            start,
            *copilot_exchange(question, "Done.", at=time.time() - 60),
        )

    def events(self, session_id: str) -> Path:
        return self.root / ".copilot" / "session-state" / session_id / "events.jsonl"

    def prompt_in_copilot(
        self, directory: Path, *arguments: str, at: str = "", **fields: str
    ) -> str:
        """What a prompt is told by our hook for Copilot, which has the argument `copilot`; without
        any by that in the settings of Claude Code."""
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": self.ids["copilot"],
            "timestamp": at or new_id(),
            "cwd": str(directory),
            "prompt": "hi",
            **fields,
        }
        output = run(event, self.root, arguments=list(arguments), COPILOT_CLI="1")
        text = json.loads(output)["additionalContext"] if output else ""
        if text:
            told = [copilot_message("user", "hi", told=text), copilot_message("assistant", "ok")]
            write(
                self.events(self.ids["copilot"]),
                copilot_start("", str(directory), at=time.time()),
                *told,
            )
        return text

    def prompt_in_opencode(self, prompt: str = "hi") -> str:
        """What our plugin file is given for a prompt, which OpenCode then writes down with it."""
        event = {
            "hook_event_name": "chat.message",
            "runtime": "opencode",
            "session_id": self.opencode_id,
            "cwd": str(self.app),
            "prompt": prompt,
        }
        output = run(event, self.root)
        text = str(json.loads(output)["text"]) if output else ""
        self.opencode.turn(self.opencode_id, prompt, "ok", told=text)
        return text

    def gemini_chat(self, directory: Path, session_id: str, *records: dict[str, Any]) -> Path:
        """Adds to a chat of Gemini, which names its directory beside it."""
        project = self.root / ".gemini" / "tmp" / directory.name
        chat = project / "chats" / f"session-2026-11-20T10-00-{session_id[9:23]}.jsonl"
        if not chat.exists():
            chat.parent.mkdir(parents=True, exist_ok=True)
            (project / ".project_root").write_text(str(directory))
            header = {
                "sessionId": session_id,
                "projectHash": "0" * 64,
                "startTime": "",
                "kind": "main",
            }
            chat.write_bytes(lines(header))
        with chat.open("ab") as file:
            file.write(lines(*records))
        return chat

    def gemini_session(self, directory: Path, question: str) -> Path:
        return self.gemini_chat(
            directory, new_id(), *gemini_exchange(question, "Done.", at=time.time() - 60)
        )

    def droid_file(self, directory: Path, session_id: str) -> Path:
        folder = str(directory).replace("/", "-")
        return self.root / ".factory" / "sessions" / folder / f"{session_id}.jsonl"

    def droid_session(self, directory: Path, question: str) -> Path:
        session_id = new_id()
        talk = droid_exchange(question, "Done.", at=time.time() - 60)
        start = droid_start(session_id, str(directory))
        return write(self.droid_file(directory, session_id), start, *talk)

    def kimi_file(self, session_id: str) -> Path:
        folder = self.root / ".kimi-code" / "sessions" / "wd_app_3a1f5e0c9b27"
        return folder / session_id / "agents" / "main" / "wire.jsonl"

    def kimi_session(self, directory: Path, question: str) -> Path:
        at = time.time() - 60
        path = self.kimi_file(f"session_{new_id()}")
        path.parent.mkdir(parents=True)
        talk = kimi_exchange(question, "Done.", at=at)
        return write(path, *kimi_start(str(directory), at=at), *talk)

    def trajectory(self, directory: Path, *steps: dict[str, Any], name: str = "") -> Path:
        """Write a trajectory anew, as its agent does when it grows."""
        name = name or new_id()
        path = self.root / ".atif" / name / "trajectory.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        agent = {
            "name": "own-agent",
            "version": "1",
            "model_name": "big-1",
            "extra": {"cwd": str(directory)},
        }
        numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
        document = {
            "schema_version": "ATIF-v1.7",
            "session_id": name,
            "agent": agent,
            "steps": numbered,
        }
        path.write_text(json.dumps(document, indent=1))
        return path

    def prompt_in_gemini(self, directory: Path) -> str:
        chat = self.gemini_chat(directory, self.ids["gemini"])
        event = {
            "session_id": self.ids["gemini"],
            "transcript_path": str(chat),
            "cwd": str(directory),
            "hook_event_name": "BeforeAgent",
            "timestamp": new_id(),
            "prompt": "hi",
        }
        output = run(event, self.root, arguments=["gemini"], GEMINI_SESSION_ID=self.ids["gemini"])
        text = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""
        answered = [gemini_message("user", "hi", told=text), gemini_message("gemini", "ok")]
        self.gemini_chat(directory, self.ids["gemini"], *answered)
        return text

    def rules(self, text: str) -> None:
        (self.root / ".session-memory").mkdir(exist_ok=True)
        (self.root / ".session-memory" / "config.yaml").write_text(text)


def payload(text: str) -> bytes:
    """What Qwen Code keeps of a prompt and what a hook told with it."""
    return json.dumps({"displayText": "hi", "hookContext": text}, separators=(",", ":")).encode()


def text_in(output: bytes) -> str:
    return told(output) if output else ""


def patch(*paths: Path) -> dict[str, Any]:
    """What a person saw of a patch of Codex, a minute ago."""
    changes = {str(path): {"type": "update", "unified_diff": ""} for path in paths}
    item = {"type": "FileChange", "id": "exec-1", "status": "completed", "changes": changes}
    return codex_item(item, at=time.time() - 60)
