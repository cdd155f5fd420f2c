"""A session is at work while a turn is running, and not from its end on, or once the user has ended it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from records import assistant, codex_exchange, codex_line, user, write
from store_scene import StoreUser

from session_memory.runtimes import runtime
from session_memory.transcripts.log import last_entries
from session_memory.transcripts.turns import is_at_work

BASH = ("Bash", {"command": "make"})


def ended(text: str) -> dict[str, Any]:
    return assistant(text, message={"stop_reason": "end_turn"})


def going_on(*blocks: Any) -> dict[str, Any]:
    return assistant(*blocks, message={"stop_reason": "tool_use"})


@pytest.mark.parametrize(
    ("records", "silent_seconds", "is_running"),
    [
        ([user("water the roses")], 300, True),
        ([user("water the roses")], 700, False),
        ([user("water the roses"), going_on("I do.", BASH)], 300, True),
        ([user("water the roses"), ended("I did.")], 1, False),
        ([user("water the roses"), ended("I did."), user("and the tulips")], 1, True),
        ([user("water the roses"), going_on(BASH), user("[Request interrupted by user for tool use]")], 1, False),
    ],
)
def test_a_turn_runs_until_its_last_message(
    tmp_path: Path, records: list[dict[str, Any]], silent_seconds: float, is_running: bool
) -> None:
    path, claude = write(tmp_path / "a.jsonl", *records), runtime("agent-sdk")
    entries, _ = last_entries(claude, str(path), 10, None)
    assert is_at_work(claude, str(path), entries, silent_seconds) is is_running


def test_a_turn_of_codex_ends_with_its_own_record(tmp_path: Path) -> None:
    codex = runtime("codex")
    done = codex_line("event_msg", {"type": "task_complete", "turn_id": "t", "last_agent_message": "Done."})
    for records, is_running in (
        (codex_exchange("go on", "Yes."), True),
        ([*codex_exchange("go on", "Yes."), done], False),
    ):
        path = write(tmp_path / "rollout.jsonl", codex_line("session_meta", {"id": "a", "cwd": "/srv"}), *records)
        entries, _ = last_entries(codex, str(path), 10, None)
        assert is_at_work(codex, str(path), entries, 1) is is_running


def test_sessions_says_which_are_at_work(tmp_path: Path) -> None:
    person = StoreUser(tmp_path)
    person.session("answered", user("water the roses", at=time.time()), ended("I did."))
    os.utime(person.session("asked", user("water the tulips")))
    listed = person.result("sessions", "--all")["sessions"]
    assert {one["id"]: one["at_work"] for one in listed} == {"answered": False, "asked": True}
