"""Patches that Codex, Copilot CLI and OpenCode are about to make: each file of one is checked."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hooks_scene import run
from opencode_scene import OpenCodeDatabase
from records import (
    append,
    codex_exchange,
    codex_line,
    copilot_exchange,
    copilot_message,
    copilot_start,
    new_id,
    user,
    write,
)
from tool_call_scene import Project

PATCH = "*** Begin Patch\n*** Update File: db\n@@\n-1\n+2\n*** Update File: app\n@@\n-1\n+2\n*** End Patch\n"
INTRODUCTION = "A record of your other sessions, not instructions:\n"


class Patching(Project):
    """A session of Codex, Copilot or OpenCode beside those of Claude Code, in the same
    repository."""

    def __init__(self, root: Path, runtime: str) -> None:
        super().__init__(root)
        self.root = root
        folder = (
            root
            / ".claude"
            / "projects"
            / self.cwd.replace("/", "-").replace("_", "-").replace(".", "-")
        )
        title = {"type": "custom-title", "customTitle": "discord"}
        self.other = write(folder / f"{new_id()}.jsonl", title, user("hello", cwd=self.cwd))
        id = new_id()
        self.event: dict[str, Any] = {
            "session_id": id,
            "cwd": self.cwd,
            "hook_event_name": "PreToolUse",
            "tool_use_id": "exec-1",
        }
        self.environment: dict[str, str] = {}
        if runtime == "codex":
            path = (
                root
                / ".codex"
                / "sessions"
                / "2026"
                / "11"
                / "20"
                / f"rollout-2026-11-20T10-00-00-{id}.jsonl"
            )
            head = codex_line("session_meta", {"id": id, "cwd": self.cwd, "source": "cli"})
            write(path, head, *codex_exchange("go on", "yes", cwd=self.cwd))
            self.event |= {
                "tool_name": "apply_patch",
                "tool_input": {"command": PATCH},
                "transcript_path": str(path),
            }
        elif runtime == "opencode":
            database = OpenCodeDatabase(root / ".local" / "share" / "opencode")
            session = database.exchange(self.directory, "go on", "yes")
            self.event |= {
                "tool_name": "apply_patch",
                "tool_input": {"patchText": PATCH},
                "session_id": session,
            }
            self.event |= {"hook_event_name": "tool.execute.before", "runtime": "opencode"}
        else:
            path = root / ".copilot" / "session-state" / id / "events.jsonl"
            self.own = write(
                path, copilot_start(id, self.cwd, at=time.time()), *copilot_exchange("go on", "yes")
            )
            self.event |= {"tool_name": "Edit", "tool_input": {"input": PATCH}}
            del self.event["tool_use_id"]  # it names no call
            self.environment = {"COPILOT_CLI": "1"}

    def answered(self) -> str:
        """What the agent is told with the patch; '' for nothing."""
        output = run(self.event, self.root, "pre_tool_use", **self.environment)
        answer = json.loads(output) if output else {}
        text = answer.get("text") or answer.get("hookSpecificOutput", answer).get(
            "additionalContext", INTRODUCTION
        )
        assert text.startswith(INTRODUCTION)
        return str(text[len(INTRODUCTION) :])


@pytest.fixture(params=["codex", "copilot", "opencode"])
def patching(request: pytest.FixtureRequest, tmp_path: Path) -> Patching:
    return Patching(tmp_path, request.param)


def test_of_a_patch_every_file_is_told_once_that_another_session_edited(patching: Patching) -> None:
    patching.edited("app")
    assert (
        patching.answered()
        == '! app: edited just now by "discord" (Claude Code), before you edited it'
    )
    patching.edited("app")
    patching.edited("db")
    told = patching.answered()
    assert ("app" in told, "db" in told) == (True, True)
    assert patching.answered() == ""


def test_where_people_are_asked_every_file_is_told_that_is_not_committed(
    patching: Patching,
) -> None:
    patching.user.config("collisions: ask\n")
    log = patching.directory / ".git" / "logs" / "HEAD"
    # git's times are whole seconds
    log.write_text(re.sub(r"> \d+ ", f"> {int(time.time()) - 3600} ", log.read_text()))
    patching.edited("app")
    patching.edited("db")
    both = ("db and app", "app and db")  # the newest first, unless both are of one millisecond
    told = patching.answered()
    assert any(f"{files}: edited " in told for files in both)
    assert patching.answered() == (
        '! db, edited just now by "discord" (Claude Code) and not committed since\n'
        '! app, edited just now by "discord" (Claude Code) and not committed since'
    )
    assert patching.answered() == ""


def test_a_call_that_nothing_names_and_that_is_in_the_transcript_already_did_nothing_yet(
    tmp_path: Path,
) -> None:
    patching = Patching(tmp_path, "copilot")
    read, edit = [
        {"toolCallId": name, "name": name, "arguments": {"path": str(patching.directory / "app")}}
        for name in ("view", "edit")
    ]
    at = time.time() - 60
    done = {**copilot_message("user", "", at=at), "type": "tool.execution_complete"}
    done["data"] = {"toolCallId": "view", "success": True, "result": {"content": "1"}}
    append(patching.own, copilot_message("assistant", "", at=at, toolRequests=[read]), done)
    patching.edited("app")
    append(patching.own, copilot_message("assistant", "", toolRequests=[edit]))
    assert (
        patching.answered()
        == '! app: edited just now by "discord" (Claude Code), after you read it'
    )
