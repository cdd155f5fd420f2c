"""The hook for tool calls as the runtime starts it: its output, its limits, many at once."""

from __future__ import annotations

import fcntl
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hooks_scene import run
from records import append, assistant, user
from tool_call_scene import Project

AT_ONCE = 8


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


TOLD = '! app: edited just now by "discord", before you edited it'


def test_an_edit_is_told_what_another_session_did_to_the_file_once(project):
    for tool, key in (
        ("Edit", "file_path"),
        ("Write", "file_path"),
        ("NotebookEdit", "notebook_path"),
    ):
        project.edited()
        call = {"tool_name": tool, "tool_input": {key: str(project.directory / "app")}}
        assert project.told(**call) == TOLD, tool
        assert project.output(**call) == b""
    assert project.user.log() == []


def test_nothing_is_printed_of_another_file_nor_for_another_tool(project):
    project.edited()
    assert project.output("db") == b""
    assert project.output(tool_name="Read") == b""
    assert project.output(tool_name="Bash", tool_input={"command": "git status"}) == b""
    assert project.output(tool_input={}) == b""
    assert project.output(tool_input="app") == b""


def test_a_prompt_that_holds_the_cursors_is_not_waited_for(project):
    project.edited()
    (lock,) = project.user.state_dir.glob("cursors/*.json.lock")
    with locked(lock):
        assert project.told() == TOLD
    assert "!" not in project.user.run(cwd=project.cwd).decode()


def test_where_another_call_holds_the_lock_nothing_is_told_and_the_next_call_is_told_it(project):
    project.edited()
    project.output("db")
    (log,) = project.user.state_dir.glob("cursors/*.json")
    log = log.with_suffix(".calls")
    log.touch()
    with locked(log):
        assert project.output() == b""
    assert [line.partition(" ")[2].partition(":")[0] for line in project.user.log()] == [
        "PreToolUse"
    ]
    assert project.told() == TOLD


def test_of_many_calls_at_once_one_is_told(project):
    project.edited()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(
            pool.map(lambda number: project.told(tool_use_id=f"toolu_{number}"), range(AT_ONCE))
        )
    assert sorted(told) == [""] * (AT_ONCE - 1) + [TOLD]
    said = project.user.log()  # a busy machine may let one take too long
    assert [line for line in said if "it took too long" not in line] == []


def test_many_calls_at_once_for_other_files_and_agents_are_each_told_once(project):
    for name in ("app", "db"):
        project.edited(name)
    calls = [(name, agent) for name in ("app", "db") for agent in ("", "a1", "a2", "a3")]

    def told(call):
        name, agent = call
        return project.told(name, **({"agent_id": agent} if agent else {}))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        at_once = list(pool.map(told, calls))
    later = map(told, calls)  # a busy machine may have let one wait too long for the lock
    assert [first + second for first, second in zip(at_once, later)] == [
        TOLD.replace("app", name) for name, _ in calls
    ]


def test_switched_off_neither_calls_nor_prompts_tell_of_collisions(project):
    project.user.config("collisions: off\n")
    append(
        project.own,
        assistant(("Read", {"file_path": str(project.directory / "app")}), cwd=project.cwd),
    )
    project.edited()
    assert project.output() == b""
    told = project.user.run(cwd=project.cwd).decode()
    assert "edited app" in told
    assert "!" not in told


def test_a_session_without_text_is_told_of_without_its_command_and_an_excluded_one_not_at_all(
    project,
):
    an_edit = ("Edit", {"file_path": str(project.directory / "app")})
    append(project.own, assistant(an_edit, cwd=project.cwd, at=time.time() - 60))
    project.user.config("sessions: {discord: {text: false}}\n")
    project.edited()
    assert project.told() == '! app: edited just now by "discord", after you edited it'
    project.user.config("sessions: {discord: {ignore: true}}\n")
    project.edited()
    assert project.output() == b""


def test_what_becomes_excluded_after_it_was_read_is_not_told(project):
    project.edited()
    assert project.output("db") == b""
    project.user.config("sessions: {discord: {ignore: true}}\n")
    assert project.output() == b""


def test_state_that_is_not_as_it_was_written_is_as_if_there_were_none(project):
    project.edited()
    project.output("db")
    (cursors,) = project.user.state_dir.glob("cursors/*.json")
    cursors.with_suffix(".calls").write_bytes(
        b'\xff[\n[1]\n{"index": "prompt", "session": 5\n{"index": "prompt", 7}'
    )
    assert project.told() == TOLD


def test_what_stands_in_the_place_of_its_files_is_moved_away(project):
    project.edited()
    (cursors,) = project.user.state_dir.glob("cursors/*.json")
    cursors.with_suffix(".calls").mkdir()
    assert project.told() == TOLD
    assert project.output() == b""


def test_on_a_full_disk_nothing_is_told_and_once_there_is_room_it_is(project):
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    project.edited()
    assert project.output(preexec_fn=fill) == b""
    assert project.told() == TOLD


def test_an_event_that_is_none_ends_in_silence(tmp_path):
    for event in (
        b"",
        b"no JSON",
        b"[]",
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit"}',
    ):
        assert run(event, tmp_path, "pre_tool_use") == b""


def test_a_transcript_that_is_gone_costs_itself(project):
    other = project.user.session({"type": "custom-title", "customTitle": "email"})
    append(other, user("hello", cwd=project.cwd))
    project.edited(transcript=other)
    project.output("db")
    other.unlink()
    project.edited()
    assert project.told() == TOLD


def test_the_hook_leaves_what_belongs_to_the_prompt_as_it_is(project):
    project.edited()
    before = {
        path: path.read_bytes()
        for path in project.user.state_dir.glob("cursors/*")
        if path.is_file()
    }
    assert project.told() == TOLD
    assert {path: path.read_bytes() for path in before} == before
    new = {path.suffix for path in project.user.state_dir.glob("cursors/*")} - {
        path.suffix for path in before
    }
    assert new == {".calls"}
    assert [
        oct(path.stat().st_mode & 0o777) for path in project.user.state_dir.glob("cursors/*")
    ] == ["0o600"] * (len(before) + 1)


def test_a_prompt_and_many_calls_at_once_tell_it_twice_at_most(project):
    an_edit = ("Edit", {"file_path": str(project.directory / "app")})
    append(project.own, assistant(an_edit, cwd=project.cwd, at=time.time() - 60))
    project.edited()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        prompt = pool.submit(project.user.run, cwd=project.cwd)
        calls = list(
            pool.map(lambda number: project.told(tool_use_id=f"toolu_{number}"), range(AT_ONCE - 1))
        )
    told = [text for text in calls if text]
    assert len(told) <= 1
    assert len(told) + prompt.result().decode().count("! app: edited ") in (1, 2)
    assert b"! app" not in project.user.run(cwd=project.cwd)
    assert project.output() == b""
