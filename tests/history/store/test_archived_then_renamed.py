"""A session whose transcript is renamed between archiving and ingesting: each message is there once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from records import assistant, user
from store_scene import MONDAY, StoreUser

OLD, NEW = "0000000a-0000-4000-8000-00000000000a", "0000000b-0000-4000-8000-00000000000b"


def talk() -> list[dict[str, object]]:
    return [
        user("please look at the harbour", at=MONDAY, cwd="/srv/agent"),
        assistant("I look.", at=MONDAY + 1, message_id="m1", cwd="/srv/agent"),
        assistant("It is *calm* there <today>.", at=MONDAY + 5, message_id="m1", cwd="/srv/agent"),
        *[user(f"and number {number}?", at=MONDAY + 10, cwd="/srv/agent") for number in range(4)],
    ]


def entries(user: StoreUser) -> Counter[str]:
    with closing(sqlite3.connect(user.database)) as connection:
        return Counter(text for (text,) in connection.execute("SELECT text FROM entries"))


@pytest.fixture
def person(tmp_path) -> StoreUser:
    return StoreUser(tmp_path / "user")


def test_the_archive_is_recognised_when_the_renamed_transcript_is_there_first(person):
    path = person.session(OLD, *talk())
    assert person.run("archive", "--all").returncode == 0
    path.rename(path.with_name(f"{NEW}.jsonl"))
    assert person.run("ingest").returncode == 0
    assert person.run("ingest").returncode == 0
    assert set(entries(person).values()) == {1}
    assert len(entries(person)) == 7


def test_the_archive_is_recognised_when_it_was_taken_in_before(person):
    path = person.session(OLD, *talk())
    assert person.run("archive", "--all").returncode == 0
    elsewhere = person.home / "elsewhere.jsonl"
    path.rename(elsewhere)
    assert person.run("ingest").returncode == 0  # from the archive alone
    assert sum(entries(person).values()) == 6  # the parts of a message are one there
    elsewhere.rename(path.with_name(f"{NEW}.jsonl"))
    assert person.run("ingest").returncode == 0
    assert person.run("ingest").returncode == 0
    assert set(entries(person).values()) == {1}
    assert len(entries(person)) == 7


def test_what_only_the_archive_has_is_kept(person):
    records = talk()
    path = person.session(OLD, *records)
    assert person.run("archive", "--all").returncode == 0
    path.unlink()
    person.session(NEW, *records[:4])
    assert person.run("ingest").returncode == 0
    assert len(entries(person)) == 7
    assert set(entries(person).values()) == {1}
