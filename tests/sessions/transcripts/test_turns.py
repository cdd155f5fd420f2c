"""A session is at work while a turn is running, until it ends or its user ends it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from records import assistant, codex_exchange, codex_line, user, write
from store_scene import StoreUser

from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.log import last_entries
from session_memory.sessions.transcripts.turns import is_at_work

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
        (
            [
                user("water the roses"),
                going_on(BASH),
                user("[Request interrupted by user for tool use]"),
            ],
            1,
            False,
        ),
    ],
)
def test_a_turn_runs_until_its_last_message(
    tmp_path: Path, records: list[dict[str, Any]], silent_seconds: float, is_running: bool
) -> None:
    path, claude = write(tmp_path / "a.jsonl", *records), runtime("agent-sdk")
    entries, _ = last_entries(claude, str(path), 10, None)
    assert is_at_work(claude, str(path), entries, silent_seconds) is is_running


class Process:
    """A process of Claude Code that works on a session, and the note that it keeps of that."""

    def __init__(self, config_dir: Path, session_id: str, domain: str | None = None) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        self.note = config_dir / "sessions" / f"{self.process.pid}.json"
        self.note.parent.mkdir(exist_ok=True)
        noted: dict[str, object] = {
            "pid": self.process.pid,
            "sessionId": session_id,
            "status": "busy",
        }
        stat = Path(f"/proc/{self.process.pid}/stat")
        noted |= (
            {"procStart": stat.read_text().rpartition(")")[2].split()[19]} if stat.exists() else {}
        )
        noted |= {} if domain is None else {"pidDomain": domain}
        self.note.write_text(json.dumps(noted))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def is_running(tmp_path: Path) -> Callable[[], bool]:
    """Whether the session `a` of Claude Code is at work, which was asked a minute ago."""
    path, claude = (
        write(tmp_path / "projects" / "-srv" / "a.jsonl", user("water the roses")),
        runtime("agent-sdk"),
    )

    def is_running_now() -> bool:
        return is_at_work(claude, str(path), last_entries(claude, str(path), 10, None)[0], 60)

    return is_running_now


def test_a_turn_is_over_as_soon_as_the_process_of_its_session_was_killed(
    is_running: Callable[[], bool], tmp_path: Path
) -> None:
    assert is_running()  # nothing is noted here: an older version, or none of Claude Code
    process = Process(tmp_path, "a")
    try:
        assert is_running()
    finally:
        process.end()
    assert process.note.exists()
    assert not is_running()


def test_a_turn_is_over_as_soon_as_no_process_is_noted_for_its_session(
    is_running: Callable[[], bool], tmp_path: Path
) -> None:
    other = Process(tmp_path, "another")
    try:
        assert not is_running()
        (tmp_path / "sessions" / "1.json").write_text("not JSON")
        (tmp_path / "sessions" / "2.json").write_text("[]")
        assert not is_running()
    finally:
        other.end()


def test_a_process_id_that_the_system_used_again_is_not_the_one_that_was_noted(
    is_running: Callable[[], bool], tmp_path: Path
) -> None:
    process = Process(tmp_path, "a")
    try:
        noted = json.loads(process.note.read_text())
        if "procStart" in noted:
            process.note.write_text(json.dumps({**noted, "procStart": "1"}))
            assert not is_running()
    finally:
        process.end()


def test_a_process_of_another_container_may_still_run(
    is_running: Callable[[], bool], tmp_path: Path
) -> None:
    Process(tmp_path, "a", "linux:0123:pid:[1]").end()
    assert is_running()


def test_a_turn_of_codex_ends_with_its_own_record(tmp_path: Path) -> None:
    codex = runtime("codex")
    done = codex_line(
        "event_msg", {"type": "task_complete", "turn_id": "t", "last_agent_message": "Done."}
    )
    for records, is_running in (
        (codex_exchange("go on", "Yes."), True),
        ([*codex_exchange("go on", "Yes."), done], False),
    ):
        path = write(
            tmp_path / "rollout.jsonl",
            codex_line("session_meta", {"id": "a", "cwd": "/srv"}),
            *records,
        )
        entries, _ = last_entries(codex, str(path), 10, None)
        assert is_at_work(codex, str(path), entries, 1) is is_running


def test_sessions_says_which_are_at_work(tmp_path: Path) -> None:
    person = StoreUser(tmp_path)
    person.session("answered", user("water the roses", at=time.time()), ended("I did."))
    os.utime(person.session("asked", user("water the tulips")))
    listed = person.result("sessions", "--all")["sessions"]
    assert {one["id"]: one["at_work"] for one in listed} == {"answered": False, "asked": True}
