"""`store.watch_path` narrowed to a part of a runtime's directory: same keys, nothing twice.

This also holds for stores of earlier versions, which named files relative to that part.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from records import append, exchange
from store_scene import MONDAY, StoreUser

from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore

PROJECT, OTHER = "-srv-agent", "-srv-bakery"
LATER = MONDAY + 90_000


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "user")
    person.session("one", *exchange("plan a trip", "Gladly.", at=MONDAY))
    person.session("two", *exchange("bake bread", "Slowly.", at=MONDAY), project=OTHER)
    return person


def narrow(person: StoreUser, *projects: str) -> None:
    paths = ", ".join(f"{person.projects}/{project}" for project in projects)
    minimum = "min_conversation_messages: 1"
    person.config(f"store: {{watch_path: [{paths}], {minimum}}}\n")


def by_earlier_version(person: StoreUser) -> None:
    """Ingest the narrowed directory as earlier versions did."""
    with closing(SqliteStore(str(person.database))) as store:
        ingestion = Ingestion(store)
        ingestion.scan(SourceDirectory(f"{person.projects}/{PROJECT}", is_named=True))


def keys(person: StoreUser) -> list[str]:
    with closing(SqliteStore(str(person.database))) as store:
        return sorted(store.file_states(""))


def titles(person: StoreUser) -> list[str]:
    listed = person.result("conversations")["conversations"]
    return sorted(one["title"] for one in listed)


def test_a_narrowed_path_lists_nothing_twice(person: StoreUser) -> None:
    person.run("ingest")
    narrow(person, PROJECT)
    assert "Nothing new in 1 file" in person.run("ingest").stdout
    assert titles(person) == ["bake bread", "plan a trip"]
    append(person.projects / PROJECT / "one.jsonl", *exchange("and now?", "Pack.", at=LATER))
    person.run("ingest")
    assert keys(person) == [f"{PROJECT}/one.jsonl", f"{OTHER}/two.jsonl"]
    assert sorted(person.stored()) == sorted(
        ["plan a trip", "Gladly.", "and now?", "Pack.", "bake bread", "Slowly."]
    )


def test_only_the_named_parts_are_watched_however_their_path_is_written(person: StoreUser) -> None:
    link = person.home / "link"
    link.symlink_to(person.projects)
    person.session("three", *exchange("sew", "Fine.", at=MONDAY), project="-srv-tailor")
    person.config(f"store: {{watch_path: [{link}/{PROJECT}, {person.projects}/{OTHER}/]}}\n")
    assert "2 of 2 files" in person.run("ingest").stdout
    assert keys(person) == [f"{PROJECT}/one.jsonl", f"{OTHER}/two.jsonl"]
    assert "Nothing new in 2 files" in person.run("ingest").stdout


@pytest.mark.parametrize("has_both", [False, True], ids=["narrow only", "both"])
def test_a_store_of_an_earlier_version_loses_nothing_and_lists_nothing_twice(
    person: StoreUser, has_both: bool
) -> None:
    if has_both:
        person.run("ingest")
    narrow(person, PROJECT)
    by_earlier_version(person)
    narrow_key = "one.jsonl"
    assert narrow_key in keys(person)
    assert narrow_key not in [person.run("ingest").stdout, *keys(person)]
    assert f"{PROJECT}/one.jsonl" in keys(person)
    assert titles(person) == (["bake bread", "plan a trip"] if has_both else ["plan a trip"])
    assert sorted(person.stored()) == sorted(
        ["plan a trip", "Gladly.", *(["bake bread", "Slowly."] if has_both else [])]
    )
    assert person.run("show", "1").returncode == 0
    assert "Nothing new in 1 file" in person.run("ingest").stdout


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "gone"])
def test_what_only_the_narrow_key_has_is_kept(person: StoreUser, is_there: bool) -> None:
    person.run("ingest")
    path = person.projects / PROJECT / "one.jsonl"
    append(path, *exchange("and now?", "Pack.", at=LATER))
    by_earlier_version(person)
    if not is_there:
        path.unlink()
    narrow(person, PROJECT)
    person.run("ingest")
    person.run("ingest")
    assert keys(person) == [f"{PROJECT}/one.jsonl", f"{OTHER}/two.jsonl"]
    assert sorted(person.stored()) == sorted(
        ["plan a trip", "Gladly.", "and now?", "Pack.", "bake bread", "Slowly."]
    )


@pytest.mark.parametrize("has_both", [False, True], ids=["narrow only", "both"])
def test_no_memory_is_made_twice(person: StoreUser, has_both: bool) -> None:
    """The work on conversations, which is not in the store, gets the new key too."""
    talk = [
        record
        for number in range(3)
        for record in exchange(f"fix bug {number}", "Fixed.", at=LATER + number)
    ]
    if has_both:
        person.run("ingest")
    append(person.projects / PROJECT / "one.jsonl", *talk)
    narrow(person, PROJECT)
    by_earlier_version(person)
    with closing(SqliteStore(str(person.database))) as store:
        store.mark_ready(round((LATER + 90_000) * 1000))
    # as an earlier version did: it never renamed a file
    code = (
        "from session_memory.history.store.ingest import intake\n"
        "from session_memory.history.store.sqlite import unchanged\n"
        "intake.take_in = lambda store, *others, **more: intake.IngestReport()\n"
        "from session_memory.history.store import refresh\n"
        "import sys; from session_memory.cli import main; sys.exit(main(['process']))"
    )
    done = person.run_command(sys.executable, "-c", code)
    made = person.result("memories")["memories"]
    assert made, done.stdout + done.stderr
    person.run("ingest")
    person.run("process")
    assert person.result("memories")["memories"] == made


def test_a_process_that_is_killed_while_it_renames_leaves_a_store_to_go_on_with(
    person: StoreUser,
) -> None:
    narrow(person, PROJECT)
    by_earlier_version(person)
    code = (
        "import os, signal\n"
        "from session_memory.history.store.sqlite import _renamed_files as renamed\n"
        "rename = renamed.rename\n"
        "renamed.rename = lambda *given: (rename(*given), os.kill(os.getpid(), signal.SIGKILL))\n"
        "from session_memory.cli import main; main(['ingest'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=person.environment, cwd=person.home, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert keys(person) == ["one.jsonl"]
    person.run("ingest")
    assert keys(person) == [f"{PROJECT}/one.jsonl"]
    assert person.stored() == ["plan a trip", "Gladly."]
