"""Cached statements of a connection have no lists of ids, which would stay in memory."""

from __future__ import annotations

from pathlib import Path

from records import exchange
from store_scene import Scene

from session_memory.history.store.values import Filter


def test_a_connection_keeps_no_statement_with_ids_after_an_ingest_and_a_search(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.write("a", *exchange("eat the plum", "Eaten."))
    scene.ingest()
    scene.write("b", *exchange("eat the plum", "Eaten."))
    scene.ingest()
    assert scene.store.search("plum", Filter())
    kept = scene.store.connection.cache_stats(include_entries=True)["entries"]
    assert kept
    assert [entry["query"] for entry in kept if "carray" in entry["query"]] == []
