"""Droid's hooks: a start is answered as a prompt, and a call is refused once with what concerns it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from git_scene import git
from hooks_scene import run
from records import (
    append,
    droid_exchange,
    droid_hook,
    droid_message,
    droid_start,
    exchange,
    new_id,
    write,
)
from runtimes_scene import Person

from session_memory.sessions.runtimes.droid import RUNTIME
from session_memory.sessions.runtimes.records import RESULTS, CallResult
from session_memory.sessions.transcripts.entries import INTRODUCTION


class DroidUser:
    """Somebody who uses Droid and Claude Code in one repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.person = Person(root)
        self.cwd = str(self.person.app)

    def hook(self, script: str, session_id: str, **fields: Any) -> dict[str, Any]:
        """Return what a hook prints for an event in the form of Droid 0.225."""
        path = self.person.droid_file(self.person.app, session_id)
        event = {
            "session_id": session_id,
            "transcript_path": str(path),
            "cwd": self.cwd,
            "permission_mode": "auto-high",
            **fields,
        }
        variables = {"FACTORY_PROJECT_DIR": self.cwd, "CLAUDE_PROJECT_DIR": self.cwd}
        output = run(event, self.root, script, arguments=["droid"], **variables)
        printed: dict[str, Any] = json.loads(output or b"{}").get("hookSpecificOutput", {})
        return printed

    def starts(self, session_id: str, **fields: Any) -> str:
        """Return what a run is told at its start, which the transcript then shows."""
        event = {"hook_event_name": "SessionStart", "source": "startup", **fields}
        printed = self.hook("session_start", session_id, **event)
        if printed:
            assert printed["hookEventName"] == "SessionStart"
            path = self.person.droid_file(self.person.app, session_id)
            told = droid_hook("SessionStart", {"hookSpecificOutput": printed})
            append(path, told, *droid_exchange("go on", "yes"))
        return str(printed.get("additionalContext", ""))

    def begins(self, *lines: dict[str, Any]) -> str:
        """Return the id of a new session, whose transcript begins with `lines`."""
        session_id = new_id()
        path = self.person.droid_file(self.person.app, session_id)
        write(path, droid_start(session_id, self.cwd), *lines)
        return session_id

    def calls(self, session_id: str, tool: str, **given: str) -> str:
        """Return why a call is refused, or ''."""
        event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}
        printed = self.hook("pre_tool_use", session_id, **event)
        assert printed.get("permissionDecision", "deny") == "deny"
        return str(printed.get("permissionDecisionReason", ""))

    def has_read(self, session_id: str) -> None:
        """Let a session have read the file `edited` ten minutes ago."""
        at = time.time() - 600
        call = {"type": "tool_use", "id": "c1", "name": "Read"}
        result = {"type": "tool_result", "tool_use_id": "c1", "is_error": False, "content": "1"}
        path = self.person.droid_file(self.person.app, session_id)
        given = {"file_path": self.person.edited}
        append(path, droid_message("assistant", {**call, "input": given}, at=at))
        append(path, droid_message("user", result, at=at))


@pytest.fixture
def user(tmp_path: Path) -> DroidUser:
    return DroidUser(tmp_path)


def test_a_run_is_told_at_its_start_and_the_prompt_that_follows_only_what_is_new(
    user: DroidUser,
) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    id = user.begins()
    assert '"paint the door" (Claude Code' in user.starts(id)
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    assert user.hook("user_prompt_submit", id, **prompt) == {}
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.hook("user_prompt_submit", id, **prompt)["additionalContext"]
    assert "oil the hinge" in told
    assert "paint the door" not in told


def test_a_fork_is_told_what_came_after_its_original_and_nothing_of_that_session(
    user: DroidUser,
) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    original = user.begins()
    assert "paint the door" in user.starts(original)
    path = user.person.droid_file(user.person.app, original)
    append(path, *droid_exchange("sweep the floor", "Swept."))
    fork = user.begins(*[json.loads(line) for line in path.read_bytes().splitlines()[1:]])
    assert user.starts(fork, source="resume", previous_session_id=original) == ""
    user.person.claude_session(user.person.app, "oil the hinge")
    third = user.begins(*[json.loads(line) for line in path.read_bytes().splitlines()[1:]])
    told = user.starts(third, source="resume", previous_session_id=original)
    assert "oil the hinge" in told
    assert "paint the door" not in told
    assert "sweep the floor" not in told


def test_the_commands_of_a_session_get_its_id_from_a_file_in_droid_s_own_directory(
    user: DroidUser,
) -> None:
    file = user.root / ".factory" / "temp" / "env" / "droid-env.sh"
    file.parent.mkdir(parents=True)
    file.write_text("export MINE=1\n")
    id = user.begins()
    user.starts(id, CLAUDE_ENV_FILE=str(file))
    assert file.read_text() == f"export MINE=1\nexport DROID_SESSION_ID={id}\n"
    elsewhere = user.root / "elsewhere.sh"
    for path in (elsewhere, user.root / ".factory" / ".." / "elsewhere.sh"):
        user.starts(user.begins(), CLAUDE_ENV_FILE=str(path))
    assert not elsewhere.exists()


def test_an_edit_is_refused_once_with_what_another_session_did_to_the_file(
    user: DroidUser,
) -> None:
    id = user.begins(*droid_exchange("look", "yes", at=time.time() - 600))
    user.has_read(id)
    user.person.claude_edits()
    reason = user.calls(id, "Edit", file_path=user.person.edited, old_str="1", new_str="3")
    assert '! src/app.py: edited just now by "mend it" (Claude Code), after you read it' in reason
    assert reason.endswith("\nThe call was not run. It is run if it comes again.")
    assert len(reason) <= 500
    assert user.calls(id, "Edit", file_path=user.person.edited, old_str="1", new_str="3") == ""


def test_a_patch_is_refused_for_any_of_its_files(user: DroidUser) -> None:
    id = user.begins(*droid_exchange("look", "yes", at=time.time() - 600))
    user.has_read(id)
    user.person.claude_edits()
    patch = f"*** Begin Patch\n*** Add File: new.py\n+1\n*** Update File: {user.person.edited}\n"
    assert "! src/app.py: edited" in user.calls(id, "ApplyPatch", input=f"{patch}@@\n-1\n+3\n")


def test_a_git_command_is_refused_once_if_the_settings_ask_and_is_run_otherwise(
    user: DroidUser,
) -> None:
    Path(user.person.edited).write_text("1\n")
    git(user.person.app, "add", "-A")
    git(user.person.app, "commit", "-q", "-m", "app")
    log = user.person.app / ".git" / "logs" / "HEAD"
    # git's times are whole seconds
    log.write_text(re.sub(r"> \d+ ", f"> {int(time.time()) - 3600} ", log.read_text()))
    id = user.begins(*droid_exchange("look", "yes", at=time.time() - 600))
    user.person.claude_edits()
    command = "git checkout -- ."
    assert user.calls(id, "Execute", command=command) == ""
    user.person.rules("collisions: ask\n")
    assert "mend it" in user.calls(id, "Execute", command=command)
    assert user.calls(id, "Execute", command=command) == ""


def test_a_refused_call_has_not_run_and_its_reason_is_no_result(user: DroidUser) -> None:
    reason = RUNTIME.context_output(f"{INTRODUCTION}! a", "PreToolUse")["hookSpecificOutput"]
    content = f"Error: {reason['permissionDecisionReason']}"
    refused = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": content}
    other = {**refused, "tool_use_id": "c2", "content": f"Error: no\n{INTRODUCTION}"}
    record = droid_message("user", refused, other)
    assert RUNTIME.records.events(record, 0, RESULTS) == [
        CallResult("c1", True, "", False),
        CallResult("c2", True, other["content"]),
    ]


def test_claude_code_inside_a_hook_of_droid_is_not_taken_for_it(user: DroidUser) -> None:
    path = write(user.root / ".claude/projects/-srv/a.jsonl", *exchange("hi", "yes"))
    event = {"session_id": "a", "transcript_path": str(path), "cwd": user.cwd}
    assert not RUNTIME.is_own(event, {"FACTORY_PROJECT_DIR": user.cwd})
