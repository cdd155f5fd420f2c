"""Reports on runtimes that delete sessions: when, how these are kept, and traps in settings."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kept_scene import KeptUser, delete
from records import exchange

from session_memory.sessions.runtimes.table import runtime


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch, "text")


def settings(path: Path, **values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def test_it_says_when_the_runtime_deletes_and_how_many_soon(person: KeptUser) -> None:
    for name, days in (("new", 1), ("soon", 24), ("sooner", 29)):
        person.talk(name, *exchange("one?", "Two."), days=days)
    person.keep()
    done = person.run("doctor", "status")
    assert "Claude Code after 30 days: 2 sessions of 3 in the next 7 days" in " ".join(
        done.stdout.split()
    )
    assert "text only; to keep transcripts too" in " ".join(done.stdout.split())
    assert "config keep whole" in person.run().stdout
    settings(person.home / ".claude" / "settings.json", cleanupPeriodDays=90)
    result = person.result("doctor", "status")
    (found,) = result["deletions"]
    assert (found["days"], found["soon"], found["traps"]) == (90, 0, [])


def test_it_says_how_many_are_kept_and_how_many_of_them_are_deleted(person: KeptUser) -> None:
    person.config("keep: whole\n")
    path = person.talk("a", *exchange("one?", "Two."))
    person.talk("b", *exchange("one?", "Two."))
    person.keep()
    delete(path)
    person.keep()
    result = person.result("doctor", "status")
    assert (result["kept"]["form"], result["kept"]["sessions"], result["kept"]["gone"]) == (
        "whole",
        2,
        1,
    )


def test_a_project_that_deletes_the_transcripts_of_all_is_a_trap(person: KeptUser) -> None:
    project = person.home / "app"
    settings(project / ".claude" / "settings.json", cleanupPeriodDays=1)
    person.talk("a", *exchange("one?", "Two.", cwd=str(project)))
    person.keep()
    (trap,) = person.result("doctor", "status")["deletions"][0]["traps"]
    assert "cleanupPeriodDays: 1 deletes the transcripts of all projects" in trap
    assert trap in person.result("doctor", "status")["problems"]


@pytest.mark.parametrize("value", [0, -1, 30.5, "60", True])
def test_a_value_for_which_claude_code_ignores_the_file_is_a_trap(
    person: KeptUser, value: object
) -> None:
    settings(person.home / ".claude" / "settings.json", cleanupPeriodDays=value)
    person.talk("a", *exchange("one?", "Two."))
    person.keep()
    (found,) = person.result("doctor", "status")["deletions"]
    assert "ignores the whole file, including its hooks" in found["traps"][0]
    assert found["days"] == 30


def test_a_pipe_in_place_of_a_projects_settings_is_not_waited_for(person: KeptUser) -> None:
    folder = person.home / "app" / ".claude"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "settings.json")
    person.talk("a", *exchange("one?", "Two.", cwd=str(folder.parent)))
    person.keep()
    assert person.result("doctor", "status")["deletions"][0]["traps"] == []


def test_settings_of_gemini_that_are_a_link_or_begin_with_a_mark_count(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text(
        json.dumps({"general": {"sessionRetention": {"maxAge": "2w"}}}), encoding="utf-8-sig"
    )
    (tmp_path / "settings.json").symlink_to(kept)
    assert runtime("gemini").backup.deletion(str(tmp_path), []).days == 14


def test_a_damaged_copy_and_a_damaged_pack_are_reported_until_they_are_gone(
    person: KeptUser,
) -> None:
    person.config("keep: whole\n")
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    delete(path)
    person.keep()
    with closing(sqlite3.connect(person.pack_file)) as database, database:
        database.execute("UPDATE kept_chunks SET content = x'00'")
    done = person.run("doctor", "store")
    assert done.returncode == 1
    assert "the kept transcript of a is damaged: it was the only copy" in " ".join(
        done.stdout.split()
    )
    person.pack_file.write_bytes(b"x" * 4096)
    for _ in range(2):
        (problem,) = person.result("doctor", "status")["problems"]
        assert "kept.db.corrupt-" in problem
        assert "recover them" in problem
