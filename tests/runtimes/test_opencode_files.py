"""What OpenCode wrote before it had a database: files, which it imported into that, if it knew their project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from opencode_scene import OpenCodeDatabase, OpenCodeUser, tool
from store_scene import StoreUser

from bench.scratch import remove_tree
from session_memory.runtimes.opencode import RUNTIME as OPENCODE
from session_memory.system import files as system


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCodeUser:
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    return OpenCodeUser(tmp_path)


def mirrors(user: OpenCodeUser) -> dict[str, bytes]:
    """What each mirror holds, by its path."""
    root = user.root / ".session-memory" / "state" / "opencode"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.jsonl")}


def before_the_database(user: OpenCodeUser) -> None:
    """Has all that is in the database lie in files, and takes it away."""
    user.database.write_files()
    user.database.path.rename(user.root / "later.db")
    for path in user.data_dir.glob("opencode.db*"):
        path.unlink()


def test_files_have_the_mirrors_that_they_have_once_they_are_imported(user: OpenCodeUser) -> None:
    command = tool("bash", {"command": "make"}, exit_code=2)
    session = user.database.exchange("/srv/app", "one \u00e4", "first", command)
    undone = user.database.turn(session, "two", "second")
    user.database.revert(session, undone)
    child = user.database.session("/srv/app/lib", parent=session)
    user.database.turn(child, "count", "three")
    user.database.turn(user.database.fork(session, "x (fork #1)"), "three", "third")
    before_the_database(user)
    user.refresh()
    assert mirrors(user) == {}
    user.refresh(everything=True)
    found = mirrors(user)
    assert [sum(b"part" in line for line in found[key].splitlines()) for key in sorted(found)] == [3, 2, 7]
    (user.root / "later.db").rename(user.database.path)
    user.refresh(everything=True)
    assert mirrors(user) == found
    remove_tree(user.root / ".session-memory")
    user.refresh(everything=True)
    assert mirrors(user) == found


def test_a_session_goes_on_in_files_and_then_in_the_database(user: OpenCodeUser) -> None:
    session = user.database.exchange("/srv/app", "one", "first")
    user.database.write_files()
    database = user.database.path.rename(user.root / "later.db")
    user.refresh(everything=True)
    assert user.said(session) == ["one", "first"]
    database.rename(user.database.path)
    user.database.turn(session, "two", "second")
    user.database.write_files()
    database = user.database.path.rename(user.root / "later.db")
    user.refresh(everything=True)
    assert user.said(session) == ["one", "first", "two", "second"]
    database.rename(user.database.path)
    user.database.turn(session, "three", "third")
    user.refresh(everything=True)
    assert user.said(session) == ["one", "first", "two", "second", "three", "third"]


def test_what_was_never_imported_is_read_beside_the_database_and_what_was_deleted_there_is_not(
    user: OpenCodeUser,
) -> None:
    orphan, deleted = (user.database.exchange("/srv/app", said, "yes") for said in ("orphan", "deleted"))
    user.database.write_files()
    user.database.delete(orphan)
    user.refresh(everything=True)
    assert sorted(Path(path).stem for path in mirrors(user)) == sorted([orphan, deleted])
    user.database.delete(deleted)
    user.database.exchange("/srv/app", "another", "yes")
    user.refresh(everything=True)
    assert deleted not in {Path(path).stem for path in mirrors(user)}
    assert user.said(orphan) == ["orphan", "yes"]


def test_a_file_that_cannot_be_read_costs_itself(user: OpenCodeUser) -> None:
    session = user.database.exchange("/srv/app", "one", "first")
    user.database.turn(session, "two", "second")
    user.database.exchange("/srv/app", "lost", "gone")
    before_the_database(user)
    storage = user.data_dir / "storage"
    parts = sorted(storage.rglob("prt_*.json"))
    parts[1].write_text('{"type":')
    [last] = [path for path in storage.rglob("ses_*.json") if path.stem != session]
    last.write_text("[]")
    user.refresh(everything=True)
    assert user.said(session) == ["one", "two", "second"]
    assert user.unreadable == 1
    assert len(mirrors(user)) == 1


def test_they_are_stored_listed_and_read_and_stay_one_session_with_the_import(tmp_path: Path) -> None:
    machine = StoreUser(tmp_path / "user")
    data_dir = machine.home / ".local" / "share" / "opencode"
    opencode = OpenCodeDatabase(data_dir)
    session = opencode.exchange("/srv/app", "one", "first")
    opencode.write_files()
    database = opencode.path.rename(machine.home / "later.db")
    assert machine.result("ingest")["entries"] == 2
    assert [one["id"] for one in machine.result("sessions", "--all")["sessions"]] == [session]
    assert "first" in machine.run("read", session, "--all").stdout
    database.rename(opencode.path)
    assert machine.result("ingest")["entries"] == 0
    assert (machine.stored(), machine.statuses()) == (["one", "first"], ["idle"])


def test_without_a_database_and_files_nothing_is_made(tmp_path: Path) -> None:
    OPENCODE.refresh(str(tmp_path / "nothing"), everything=True)
    assert list(tmp_path.iterdir()) == []
