"""A store made before texts were packed tells, once it is opened, all that it told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from store_scene import EVERYTHING, Scene, put, said, state, tool

from session_memory.store.search.terms import indexable
from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.sqlite.packed_texts import pack_texts
from session_memory.store.sqlite.schema import MIGRATIONS
from session_memory.store.sqlite.texts import Texts
from session_memory.store.values import ToolOutcome
from session_memory.system.sqlite import Database

QUERIES = ("deployment", '"billing service" yesterday', "invoice_77", "🎉", "京都", "kubectl -yesterday")
LONG = "Please look into why the deployment of the billing service fails since yesterday evening. "
FORMER = MIGRATIONS[: MIGRATIONS.index(pack_texts)]
_SAME = ("memory_file_states", "memory_conversations", "memory_shared_items")


def fill(scene: Scene, uses: int) -> None:
    """An original, a fork of it, a session of another group, a tool use without a result, and one that failed."""
    failed = ToolOutcome("error", f"Exit code 1: {LONG}"[:200], 500, 7)
    paths = [tool(f"cat /srv/agent/billing-service/src/handlers/invoice_{n}.py | head -50 | less") for n in range(uses)]
    shared = (said(LONG * 4, tools=(tool("kubectl get pods", failed),)), said("京都へ行きたい 🎉", 1, "assistant"))
    put(scene, None, state("a"), *shared, said("", 2, "assistant", tools=tuple(paths)), said("mine", 200))
    put(scene, None, state("b"), *shared, said("other way " * 30, 3, cwd="/elsewhere"))
    put(scene, None, state("c", title="Trip", title_rank=1), said("", tools=(tool("sleep 99", call="open"),)))
    put(scene, None, state("a", home="red"), said("deployment of the red group", key="red"))


def as_before(store: SqliteStore, path: Path) -> None:
    """Makes a database at `path` with the former tables, that holds what `store` does."""
    former = Database(str(path), FORMER).connection
    now, texts = store.connection, Texts(store.connection)
    with former:
        for table in _SAME:
            for row in now.execute(f"SELECT * FROM {table}"):
                insert(former, table, row)
        keys = {item: key for key, item in now.execute("SELECT key, id FROM memory_item_keys")}
        for item, *row, content in now.execute("SELECT * FROM memory_transcript_entries"):
            insert(former, "memory_transcript_entries", (item, keys[item], *row, texts.whole(content)))
        for row in now.execute("SELECT * FROM memory_tool_uses"):
            error = row[9] and texts.whole(row[9])
            values = (row[0], keys[row[0]], *row[1:7], texts.whole(row[7]), row[8], error, *row[10:])
            insert(former, "memory_tool_uses", values)
        for item, text in former.execute("SELECT id, text FROM memory_texts WHERE text != ''").fetchall():
            former.execute("INSERT INTO memory_search (rowid, text) VALUES (?, ?)", (item, indexable(text)))
    former.close()


def insert(connection: apsw.Connection, table: str, row: tuple[Any, ...]) -> None:
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def told(store: SqliteStore) -> dict[str, Any]:
    conversations = store.conversations(EVERYTHING)
    return {
        "files": [store.file_states(home) for home in ("", "red")],
        "conversations": conversations,
        "entries": [list(store.entries(one.id)) for one in conversations],
        "counts": store.counts()._replace(database_bytes=0),
        "hits": {query: store.search(query, EVERYTHING) for query in QUERIES},
    }


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "now")


@pytest.fixture(params=[3, 1500], ids=["little", "enough for a dictionary"])
def migrated(request: pytest.FixtureRequest, scene: Scene, tmp_path: Path) -> Scene:
    """What `scene` holds as well, but from a store that was made before."""
    fill(scene, request.param)
    other = Scene(tmp_path / "former")
    other.store.close()
    other.database.unlink()
    as_before(scene.store, other.database)
    other.store = other.open()
    return other


def test_a_former_store_tells_what_it_told(scene, migrated):
    assert all(told(scene.store)["hits"].values())
    assert told(migrated.store) == told(scene.store)


def test_the_texts_of_a_former_store_are_packed_and_its_tables_are_gone(migrated):
    connection = migrated.store.connection
    assert connection.execute("SELECT count(*) FROM memory_texts WHERE typeof(text) = 'blob'").get >= 2
    assert not connection.execute("SELECT 1 FROM memory_texts WHERE typeof(text) = 'text' AND length(text) > 100").get
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert not any(name.startswith("former") or name.endswith("_key") for name in known)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.execute("INSERT INTO memory_search (memory_search) VALUES ('integrity-check')")


def test_a_former_store_has_the_tables_of_a_new_one(scene, migrated):
    sql = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    assert migrated.store.connection.execute(sql).fetchall() == scene.store.connection.execute(sql).fetchall()


def test_what_a_former_store_knows_is_not_stored_again(scene, migrated):
    for one in (scene, migrated):
        known = one.store.file_states("")["-srv-agent/a.jsonl"]
        again = (said(LONG * 4, tools=(tool("kubectl get pods"),)), said("mine", 200), said("new", 201))
        put(one, known, known._replace(generation=2), *again)
        put(one, None, state("d"), *again)
        waiting = one.store.file_states("")["-srv-agent/c.jsonl"]
        call = tool("sleep 99", call="open").call
        put(one, waiting, waiting._replace(offset=9), outcomes=[(call, ToolOutcome("ok", "", 10, 2))])
    assert told(migrated.store) == told(scene.store)
    assert [item.outcome for c in migrated.conversations(session="c") for item in migrated.items(c)] == ["ok"]


def test_forgetting_in_a_former_store_leaves_what_others_share(scene, migrated):
    for one in (scene, migrated):
        one.store.forget("", "-srv-agent/a.jsonl")
        put(one, None, state("e"), said(LONG * 4, tools=(tool("kubectl get pods"),)), said("fork of a fork", 9))
    assert told(migrated.store) == told(scene.store)
    assert LONG * 4 in migrated.texts(session="b")


def test_a_former_store_is_smaller_afterwards(scene, tmp_path):
    fill(scene, 5000)
    path = tmp_path / "former.db"
    as_before(scene.store, path)
    before = path.stat().st_size
    SqliteStore(str(path)).close()
    assert path.stat().st_size < 0.85 * before


def test_a_migration_that_fails_leaves_the_former_store_as_it_was(scene, tmp_path, monkeypatch):
    fill(scene, 100)
    path = tmp_path / "former.db"
    as_before(scene.store, path)
    with monkeypatch.context() as patched:
        patched.setattr(Texts, "kept", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            SqliteStore(str(path))
    assert told(SqliteStore(str(path))) == told(scene.store)
