"""Secrets stored before the present rules are redacted in place, a few at a time."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_scene import EVERYTHING, Scene, StoreUser, put, said, state, tool, trip

from session_memory.history.store.ingest.values import ToolOutcome
from session_memory.history.store.sqlite import redaction
from session_memory.history.store.sqlite.engine import SqliteStore

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
FAILED = ToolOutcome("error", f"Error: {TOKEN} is refused", 900, 9)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def fill(scene: Scene) -> None:
    """A session as a version stored it that knew no tokens, and a fork of it."""
    shared = (
        said(f"use {TOKEN} for cherries"),
        said("I try", 1, "assistant", tools=(tool(f"curl -u {TOKEN} /srv/plums", FAILED),)),
        said(f"elsewhere {TOKEN}", 2, cwd=f"/srv/{TOKEN}"),
    )
    put(scene, None, state("a", title=f"About {TOKEN}"), *shared)
    put(scene, None, state("b"), *shared, said("pears", 3))
    stored_by_earlier_rules(scene.store)


def stored_by_earlier_rules(store: SqliteStore) -> None:
    store.connection.execute("UPDATE memory_redaction SET rules = 'others'")


def bytes_of(scene: Scene) -> bytes:
    return b"".join(path.read_bytes() for path in scene.database.parent.glob("memory.db*"))


def test_all_that_is_kept_is_redacted_and_no_byte_is_left(scene: Scene) -> None:
    fill(scene)
    scene.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert TOKEN.encode() in bytes_of(scene)
    assert scene.store.redacted_share() == 0
    scene.store.redact_again(60)
    assert scene.store.redacted_share() == 1
    content = bytes_of(scene)
    assert TOKEN.encode() not in content
    assert TOKEN[4:20].lower().encode() not in content.lower()  # nor a term of the index
    (first, second) = scene.conversations()
    told = str(
        [list(scene.store.entries(first.id)), list(scene.store.entries(second.id)), first, second]
    )
    assert told.count("use [redacted") == 2
    assert "/srv/plums" in told
    assert "About [redacted" in told


def test_the_index_and_the_sizes_follow_the_texts(scene: Scene) -> None:
    fill(scene)
    scene.store.redact_again(60)
    assert len(scene.store.search("redacted -pears", EVERYTHING)) == 3
    assert scene.store.search(TOKEN[4:], EVERYTHING) == []
    sizes = scene.store.connection.execute("SELECT text_bytes FROM memory_conversations").fetchall()
    again = [
        sum(len(entry.text) for entry in scene.store.entries(one.id))
        for one in scene.conversations()
    ]
    assert sorted(size for (size,) in sizes) == sorted(again)


def test_it_goes_on_where_it_was_killed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        scene,
        None,
        state("a"),
        *[said(f"{number} {TOKEN}", number, key=f"k{number}") for number in range(50)],
    )
    stored_by_earlier_rules(scene.store)
    scene.store.close()
    monkeypatch.setattr(redaction, "BATCH_ITEMS", 10)
    assert [killed_after(scene, batches) for batches in (1, 3)] == [-signal.SIGKILL] * 2
    scene.store = scene.open()
    assert scene.store.redacted_share() == pytest.approx(0.8)
    assert sum(TOKEN in text for text in scene.texts()) == 10
    scene.store.redact_again(60)
    assert TOKEN.encode() not in bytes_of(scene)


def killed_after(scene: Scene, batches: int) -> int:
    """How a process ends that is killed after so many batches."""
    child = os.fork()
    if child == 0:
        begun: list[int] = []
        redact_some = redaction.redact_some

        def dying(*arguments: Any) -> redaction.Redaction:
            begun.append(1)
            if len(begun) > batches:
                os.kill(os.getpid(), signal.SIGKILL)
            return redact_some(*arguments)

        redaction.redact_some = dying
        with closing(scene.open()) as store:
            store.redact_again(60)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_is_stored_now_is_not_looked_through_again(scene: Scene) -> None:
    put(scene, None, state("a"), said("plum"))
    assert scene.store.redacted_share() == 1
    before = scene.store.connection.total_changes()
    scene.store.redact_again(60)
    assert scene.store.connection.total_changes() == before


def test_redacting_what_is_redacted_changes_nothing(scene: Scene) -> None:
    fill(scene)
    scene.store.redact_again(60)
    before = [list(scene.store.entries(one.id)) for one in scene.store.conversations(EVERYTHING)]
    stored_by_earlier_rules(scene.store)
    scene.store.redact_again(60)
    assert [
        list(scene.store.entries(one.id)) for one in scene.store.conversations(EVERYTHING)
    ] == before


def test_a_person_hears_how_far_it_is_and_ingest_does_it_though_nothing_is_new(
    tmp_path: Path,
) -> None:
    user = StoreUser(tmp_path)
    user.session("one", *trip())
    user.run("ingest")
    with closing(sqlite3.connect(user.database)) as connection, connection:
        connection.execute(
            "UPDATE memory_transcript_entries SET content = 'the cherry ' || ?", (TOKEN,)
        )
        connection.execute("DELETE FROM memory_redaction")
    said = " ".join(user.run("health-check").stdout.split())
    assert (
        "0% of the texts of earlier versions was redacted again: session-memory ingest continues"
        in said
    )
    assert user.result("health-check")["redacted"] == 0
    assert user.run("ingest").returncode == 0
    assert "secrets" not in user.run("health-check").stdout
    assert user.result("health-check")["redacted"] == 1
    assert TOKEN.encode() not in user.database.read_bytes()
    assert user.run("ingest").stdout.startswith("Nothing new in 1 file")
