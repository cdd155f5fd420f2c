"""The disk space that the data takes, and what its limit may delete."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_scene import KeptUser, delete
from records import exchange

from session_memory.history.copies.pack import pack_path
from session_memory.history.disk import KEPT, Sizes


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path / "home", monkeypatch)


def test_the_kinds_add_up_to_all_files_that_are_kept(person: KeptUser) -> None:
    person.talk("a", *exchange("one?", "Two."))
    person.keep()
    person.run("archive", "--all")
    location, store = person.ingested()
    store.close()
    usage = Sizes().usage(location)
    files = [path for path in (person.home / ".session-memory").rglob("*") if path.is_file()]
    assert sum(usage.values()) == sum(path.lstat().st_size for path in files)
    assert usage[KEPT] == Path(pack_path(location.database)).stat().st_size
    assert all(usage[kind] for kind in ("database", "archives", "state"))


def test_no_limit_deletes_the_only_copy_of_a_session_and_doctor_says_what_helps(
    person: KeptUser,
) -> None:
    only_here = person.talk("gone", *exchange("x" * 200_000, "Yes."))
    person.talk("there", *exchange("x" * 200_000, "Yes."), days=3)
    person.keep()
    delete(only_here)
    person.keep()
    person.config("keep: whole\ndisk_bytes: 1\n")
    person.talk("new", *exchange("three?", "Four."), days=9)
    person.keep()
    assert list(person.kept()) == ["gone"]
    shown = person.result("doctor", "status")
    assert shown["disk"]["limit"] == 1
    assert any(
        "session-memory forget --before DATE lists it first" in problem
        for problem in shown["problems"]
    )


def test_the_former_name_of_the_limit_still_counts(person: KeptUser) -> None:
    person.config("keep_bytes: 123456\n")
    assert person.result("doctor", "status")["disk"]["limit"] == 123456
