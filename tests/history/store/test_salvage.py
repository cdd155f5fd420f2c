"""A damaged page loses at most its own content, and nothing that archives or transcripts have."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import share
from records import exchange
from store_scene import MONDAY, StoreUser

from bench.scratch import remove_tree
from session_memory.history.store.sqlite.corruption import (
    _finish_salvage,
    quarantine_if_corrupt,
    set_aside,
)

SESSIONS, TURNS = 14, 8
TOKEN = re.compile(r"token\d+x\d+[ab]")
SEED = random.randrange(10**6)


def session_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def talk(number: int) -> list[dict[str, object]]:
    return [
        record
        for turn in range(TURNS)
        for record in exchange(
            f"token{number}x{turn}a " + "please " * (number * 40),
            f"token{number}x{turn}b " + "gladly " * (turn * 300),
            at=MONDAY + number * 1000 + turn * 20,
            cwd="/srv/agent",
        )
    ]


def built(home: Path, *, is_archived: bool) -> StoreUser:
    """A user whose runtime has deleted all transcripts but two; one that is there was rewritten, one copied."""
    machine = StoreUser(home)
    talks = {number: talk(number) for number in range(SESSIONS)}
    for number, records in talks.items():
        machine.session(session_id(number), *records)
    machine.session("copy-of-1", *talks[1])
    assert machine.run("ingest").returncode == 0
    if is_archived:
        assert machine.run("archive", "--all").returncode == 0
    for number in range(2, SESSIONS):
        (machine.projects / "-srv-agent" / f"{session_id(number)}.jsonl").unlink()
    machine.session(session_id(0), *talks[0][4:])
    assert machine.run("ingest").returncode == 0
    with closing(sqlite3.connect(machine.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(truncate)")
    shutil.copytree(machine.home / ".session-memory", machine.home / "kept")
    return machine


@pytest.fixture(scope="module", params=[True, False], ids=["archived", "not archived"])
def kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[StoreUser, bool]:
    return built(
        tmp_path_factory.mktemp("salvage") / "user", is_archived=request.param
    ), request.param


@pytest.fixture
def machine(kept: tuple[StoreUser, bool]) -> StoreUser:
    user, _ = kept
    remove_tree(user.home / ".session-memory")
    shutil.copytree(user.home / "kept", user.home / ".session-memory")
    return user


def tokens(machine: StoreUser) -> Counter[str]:
    """How often each message is in the view `entries`."""
    with closing(sqlite3.connect(machine.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        texts = [text for (text,) in connection.execute("SELECT text FROM entries")]
    return Counter(token for text in texts for token in TOKEN.findall(text))


EVERY = Counter(
    f"token{number}x{turn}{who}"
    for number in range(SESSIONS)
    for turn in range(TURNS)
    for who in "ab"
)


def damaged_page(database: Path, number: int, size: int) -> bytes:
    """Overwrite a page with noise; return what it was."""
    content = bytearray(database.read_bytes())
    before = bytes(content[number * size : (number + 1) * size])
    content[number * size : (number + 1) * size] = random.Random(number).randbytes(len(before))
    database.write_bytes(content)
    return before


def test_after_one_damaged_page_all_is_there_but_what_only_that_page_had(kept, machine):
    _, is_archived = kept
    size = 4096
    pages = machine.database.stat().st_size // size
    drawn = sorted(random.Random(SEED).sample(range(pages), share.some(pages, 8)))
    for number in drawn:
        shutil.copytree(machine.home / "kept", machine.home / ".session-memory", dirs_exist_ok=True)
        before = damaged_page(machine.database, number, size)
        said = machine.run("doctor", "store")  # reads all of it
        machine.run("ingest")
        moved = set_aside(str(machine.database))
        found = tokens(machine)
        where = f"seed {SEED}, page {number}: {said.stderr}"
        assert said.returncode == 0, where
        assert max(found.values()) == 1, where
        lost = {token for token in EVERY if token not in found}
        if is_archived:
            assert not lost, where
        else:
            on_page = set(TOKEN.findall(before.decode("latin-1")))
            assert lost <= on_page or (lost and len(on_page) == 0 and len(lost) <= 1), where
        for one in moved:
            for path in machine.database.parent.glob(Path(one).name + "*"):
                path.unlink()


def test_a_salvaged_store_keeps_its_sessions_their_titles_and_what_search_finds(machine):
    with closing(sqlite3.connect(machine.database)) as connection:
        sessions = connection.execute(
            "SELECT session_id, runtime, directory, started_at FROM sessions"
        ).fetchall()
        [(root,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'memory_file_states'"
        )
    damaged_page(machine.database, root - 1, 4096)  # of all sessions
    assert "token5x3a" in machine.run("search", "token5x3a").stdout.replace("*", "")
    with closing(sqlite3.connect(machine.database)) as connection:
        known = connection.execute(
            "SELECT session_id, runtime, directory, started_at FROM sessions"
        ).fetchall()
    assert {one[0] for one in known} >= {session_id(0), session_id(1)}
    assert set(known) & set(sessions)


def test_a_process_that_is_killed_while_it_salvages_is_followed_by_one_that_does(
    machine, monkeypatch
):
    damaged_page(machine.database, 0, 4096)
    import session_memory.history.store.sqlite.corruption as corruption

    def killed(path: str, moved: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(corruption, "_put_salvaged", killed)
        with pytest.raises(KeyboardInterrupt):
            quarantine_if_corrupt(str(machine.database))
    assert not machine.database.exists()
    assert _finish_salvage(str(machine.database)) == set_aside(str(machine.database))[-1]
    assert machine.run("ingest").returncode == 0
    assert set(tokens(machine)) == set(EVERY)
    left = {path.name for path in machine.database.parent.glob("memory.db.salvag*")}
    assert left == set()


def test_what_rules_exclude_stays_excluded_in_a_salvaged_store(machine):
    machine.config("projects:\n  /srv/agent: {ignore: true}\n")
    assert machine.run("ingest").returncode == 0
    with closing(sqlite3.connect(machine.database)) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (0,)
        connection.execute("PRAGMA wal_checkpoint(truncate)")
    pages = machine.database.stat().st_size // 4096
    for number in random.Random(SEED).sample(range(pages), share.some(pages, 4)):
        damaged_page(machine.database, number, 4096)
        machine.run("doctor", "store")
        assert machine.run("ingest").returncode == 0
        with closing(sqlite3.connect(machine.database)) as connection:
            assert connection.execute("SELECT count(*) FROM entries").fetchone() == (0,), (
                f"seed {SEED}, page {number}"
            )
            connection.execute("PRAGMA wal_checkpoint(truncate)")
    (machine.home / ".session-memory" / "config.yaml").unlink()
