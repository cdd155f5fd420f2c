"""The store as a plain database, readable with SQLite alone; and stores of earlier commits."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from records import assistant, user
from store_scene import EVERYTHING, MONDAY, START, Scene, put, said, state, tool, trip

from session_memory.common.system.sqlite import CorruptDatabaseError, Database
from session_memory.history.store.ingest.values import ToolOutcome
from session_memory.history.store.sqlite import _schema as schema
from session_memory.history.store.sqlite._conversations import rebuild_conversations
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.queue import StoredQueue

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "store"
LONG = (
    "Please look into why the deployment of the billing service fails since yesterday evening. " * 3
)
FAILED = ToolOutcome("error", f"Error: {LONG}"[:300], 900, 9)
VIEWS = ("sessions", "conversations", "entries", "tool_uses")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def fill(scene: Scene) -> None:
    """Add a session with a failed and an unfinished tool use, its fork, and another group's session."""
    shared = (said(LONG), said("I look", 1, "assistant", tools=(tool("kubectl get pods", FAILED),)))
    put(
        scene,
        None,
        state("a", title="Billing"),
        *shared,
        said("", 2, "assistant", tools=(tool("sleep 99"),)),
    )
    put(scene, None, state("b"), *shared, said("other way", 200, cwd="/elsewhere"))
    put(scene, None, state("a", home="red"), said("deployment of the red group", key="red"))


def read(scene: Scene, sql: str) -> list[tuple[object, ...]]:
    """Return the result of a statement in Python's own SQLite, without our functions."""
    with closing(sqlite3.connect(f"file:{scene.database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


class TestViews:
    def test_sessions_have_their_runtime_title_directory_and_times(self, scene):
        first = state(
            "a", title="Billing", first_entry_timestamp=START, last_entry_timestamp=START + 61_042
        )
        put(scene, None, first, said("hello"))
        assert read(scene, "SELECT * FROM sessions") == [
            (
                "a",
                "claude-code",
                "",
                "Billing",
                "/srv/agent",
                "2026-05-28T20:26:40.000Z",
                "2026-05-28T20:27:41.042Z",
                "/root/-srv-agent/a.jsonl",
                "idle",
            )
        ]

    def test_conversations_have_their_session_and_what_the_store_tells_of_them(self, scene):
        fill(scene)
        sql = "SELECT id, session_id, started_at, ended_at, messages, text_bytes, status FROM conversations ORDER BY id"
        found = read(scene, sql)
        assert [row[0] for row in found] == sorted(one.id for one in scene.conversations())
        times = "2026-05-28T20:26:40.000Z", "2026-05-28T20:28:40.000Z"
        assert found[0][1:] == ("a", *times, 4, len(LONG) + 30, "active")

    def test_entries_are_text_each_once_in_its_conversation(self, scene):
        fill(scene)
        ids = {talk.session_id: talk.id for talk in scene.conversations()}
        found = read(
            scene,
            "SELECT conversation_id, session_id, role, text, time, directory FROM entries ORDER BY id",
        )
        assert found[:3] == [
            (ids["a"], "a", "user", LONG, "2026-05-28T20:26:40.000Z", "/srv/agent"),
            (ids["a"], "a", "assistant", "I look", "2026-05-28T20:27:40.000Z", "/srv/agent"),
            (ids["b"], "b", "user", "other way", "2026-05-28T23:46:40.000Z", "/elsewhere"),
        ]
        assert read(scene, "SELECT group_name, text FROM entries WHERE group_name != ''") == [
            ("red", "deployment of the red group")
        ]

    def test_entries_name_their_file_and_the_tools_of_their_message(self, scene):
        """Also in a store that an earlier version made, which had a view without these columns."""
        calls = ("Read", {"file_path": "/srv/agent/a.py"}), ("Bash", {"command": "ls"})
        scene.write(
            "one",
            user("look", at=MONDAY),
            assistant("I look.", at=MONDAY + 1, message_id="m1"),
            assistant(calls[0], at=MONDAY + 2, message_id="m1"),
            assistant(calls[1], at=MONDAY + 3, message_id="m1"),
            assistant(calls[0], at=MONDAY + 4, message_id="m2"),
            assistant("Done.", at=MONDAY + 5, message_id="m3"),
        )
        scene.ingest()
        wanted = [("look", ""), ("I look.", "Read,Bash"), ("Done.", "")]
        sql = "SELECT text, tool_names FROM entries ORDER BY id"
        assert read(scene, sql) == wanted
        assert {row[0] for row in read(scene, "SELECT source_file FROM entries")} == {
            "-srv-agent/one.jsonl"
        }
        with scene.store.connection as connection:
            connection.execute("DROP VIEW entries")
            connection.execute("CREATE VIEW entries AS SELECT id FROM memory_transcript_entries")
            connection.execute("DELETE FROM migrations WHERE name = 'widen_view_of_entries'")
        scene.store.close()
        scene.store = scene.open()
        assert read(scene, sql) == wanted

    def test_tool_uses_have_their_argument_and_how_they_ended(self, scene):
        fill(scene)
        columns = (
            "session_id, tool, kind, argument, outcome, error, result_characters, result_lines"
        )
        assert read(scene, f"SELECT {columns} FROM tool_uses ORDER BY time") == [
            ("a", "Bash", "command", "kubectl get pods", "error", FAILED.error, 900, 9),
            ("a", "Bash", "command", "sleep 99", None, None, None, None),
        ]

    def test_they_tell_what_the_store_tells_of_a_real_session(self, scene):
        scene.write("one", *trip())
        scene.ingest()
        items = [item for talk in scene.conversations() for item in scene.items(talk)]
        sql = "SELECT id, role, text FROM entries UNION ALL SELECT id, 'tool', argument FROM tool_uses ORDER BY 1"
        assert read(scene, sql) == [(item.id, item.role, item.text) for item in items]

    def test_their_columns_are_those_that_are_documented_each_with_a_type_for_programs_that_ask_for_one(
        self, scene
    ):
        page = (ROOT / "docs" / "inside" / "store.md").read_text()
        for view in VIEWS:
            columns = scene.store.connection.execute(f"PRAGMA table_info({view})").fetchall()
            [documented] = re.findall(rf"^\| `{view}` \| (.*) \|$", page, re.MULTILINE)
            assert re.findall(r"`(\w+)`", documented) == [row[1] for row in columns]
            assert {row[2] for row in columns} <= {"TEXT", "INTEGER"}

    def test_a_conversation_without_a_title_is_called_by_what_was_said_first(self, scene):
        fill(scene)
        titles = {talk.id: talk.title for talk in scene.conversations()}
        assert dict(read(scene, "SELECT id, title FROM conversations")) == titles
        assert "Billing" in titles.values()
        assert "other way" in titles.values()

    def test_entries_of_a_session_or_a_conversation_are_found_by_indexes(self, scene):
        fill(scene)
        for condition in ("session_id = 'a'", "conversation_id = 1"):
            plan = [
                row[3]
                for row in read(
                    scene, f"EXPLAIN QUERY PLAN SELECT * FROM entries WHERE {condition}"
                )
            ]
            assert "SEARCH entry USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan
            assert sum("SCAN" in step and "subquery" not in step for step in plan) <= 1


def test_the_documented_queries_run_and_find_something(scene):
    fill(scene)
    queries = re.findall(
        r"```sql\n(.*?)```", (ROOT / "docs" / "inside" / "store.md").read_text(), re.DOTALL
    )
    assert len(queries) == 5
    for query in queries:
        assert read(scene, query), query


def test_the_tables_are_what_schema_sql_says(scene):
    tables = read(
        scene,
        "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE%' AND name NOT LIKE '%search_%'",
    )
    written = Path(schema.__file__).with_name("schema.sql").read_text()
    created = set(
        re.findall(
            r"^CREATE (?:VIRTUAL )?(?:TABLE|VIEW|INDEX|TRIGGER) (\w+)", written, re.MULTILINE
        )
    )
    assert {name for (name,) in tables} - {"migrations", "sqlite_sequence"} == created
    assert written.count(f"tokenize = '{schema.TOKENIZER}'") == 2


class TestTexts:
    def test_all_that_is_told_of_a_long_text(self, scene):
        put(
            scene,
            None,
            state(),
            said(f"{LONG} 🎉 kumquat"),
            said("", 1, "assistant", tools=(tool(LONG * 2, FAILED),)),
        )
        [conversation] = scene.conversations()
        title = "Please look into why the deployment of the billing service fails since…"
        assert conversation.title == title
        first, use = scene.items(conversation)
        assert (first.text, use.text, use.error) == (f"{LONG} 🎉 kumquat", LONG * 2, FAILED.error)
        for query in ("kumquat", "🎉", '"billing service" kumquat'):
            hit = scene.store.search(query, EVERYTHING)[0]
            assert (hit.entry.text, hit.conversation.title) == (first.text, title)

    def test_an_error_that_comes_later(self, scene):
        first = put(scene, None, state(), said("", tools=(tool("ls", call="1"),)))
        use = tool("ls", call="1")
        put(
            scene,
            first,
            first._replace(offset=5),
            outcomes=[(use.call, ToolOutcome("error", LONG[:250], 300, 3))],
        )
        [item] = scene.items(scene.conversations()[0])
        assert item.error == LONG[:250]

    def test_texts_count_in_bytes_and_also_after_conversations_are_cut_anew(self, scene):
        put(scene, None, state(), said(LONG), said("äöü", 5, tools=(tool("ls"),)))
        before = scene.store.counts().text_bytes
        assert before == len(LONG) + 6 + 2
        assert rebuild_conversations(scene.store, 2)
        assert len(scene.conversations()) == 2
        assert scene.store.counts().text_bytes == before

    def test_what_is_undone_with_its_batch_is_stored_by_the_next(self, scene):
        with pytest.raises(apsw.ConstraintError, match="CHECK"):
            put(scene, None, state("a"), said("a", tools=(tool("ls"),)), said("x", role="nobody"))
        put(scene, None, state("a"), said("a", tools=(tool("ls"),)))
        assert scene.texts() == ["a", "Bash ls"]

    def test_a_forgotten_original_leaves_its_keys_to_the_fork(self, scene):
        both = (said(LONG, tools=(tool("ls -l"),)),)
        put(scene, None, state("a"), *both, said("mine", 1))
        put(scene, None, state("b"), *both, said("other way", 2))
        scene.store.forget("", "-srv-agent/a.jsonl")
        put(scene, None, state("c"), *both, said("mine", 3))
        assert scene.store.counts().entries == 3
        assert scene.store.counts().tool_uses == 1
        assert [len(scene.items(one)) for one in scene.conversations()] == [3, 3]
        for name in ("b", "c"):
            scene.store.forget("", f"-srv-agent/{name}.jsonl")
        assert scene.store.connection.execute("SELECT count(*) FROM memory_item_keys").get == 0
        assert scene.store.search("deployment", EVERYTHING) == []


class TestEarlierCommit:
    def test_its_store_is_set_aside_and_a_new_one_made(self, tmp_path):
        path = tmp_path / "memory.db"

        def create_tables(connection: apsw.Connection) -> None:
            connection.execute(
                "CREATE TABLE memory_file_states (id INTEGER PRIMARY KEY, content BLOB)"
            )

        Database(str(path), [create_tables]).close()
        before = path.read_bytes()
        with closing(SqliteStore(str(path))) as store:
            assert store.counts().files == 0
            assert not store.is_newer
            assert ".outdated-" in store.quarantined
            assert Path(store.quarantined).read_bytes()[:16] == before[:16]
        with closing(SqliteStore(str(path))) as store:
            assert store.quarantined == ""


def test_a_migration_that_fails_leaves_the_store_as_it_was(scene):
    fill(scene)
    before = scene.texts()

    def break_down(connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM memory_transcript_entries")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Database(str(scene.database), (*schema.MIGRATIONS, break_down))
    assert scene.texts() == before


def test_no_file_gets_the_id_of_one_that_was_deleted_nor_a_store_that_of_another(scene, tmp_path):
    put(scene, None, state("a"), said("a zebra"))
    before = put(scene, None, state("b"), said("a lion")).id
    scene.store.forget("", "-srv-agent/b.jsonl")
    assert put(scene, None, state("b"), said("a lion")).id > before
    with closing(Scene(tmp_path / "other").store) as other:
        ids = [
            one.connection.execute("SELECT id FROM memory_store").get
            for one in (scene.store, other)
        ]
    assert len(set(ids)) == 2


def test_a_store_whose_pages_are_damaged_is_corrupt(scene):
    put(scene, None, state(), *[said(f"{LONG}{number}") for number in range(2000)])
    scene.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    scene.store.close()
    size = scene.database.stat().st_size
    with scene.database.open("r+b") as file:
        file.seek(size // 3 // 4096 * 4096)
        file.write(b"\xff" * (size // 2))
    with closing(scene.open()) as store, pytest.raises(CorruptDatabaseError):
        list(store.entries(1))


@pytest.fixture
def of_0_2_0(scene: Scene) -> Scene:
    """A store as 0.1.0 and 0.2.0 made it: of `trip`, and of a session and its fork."""
    scene.store.close()
    for path in scene.database.parent.iterdir():
        path.unlink()
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.executescript((FIXTURES / "0.2.0.sql").read_text())
    scene.store = scene.open()
    return scene


def test_a_store_of_0_2_0_is_migrated_with_all_that_is_in_it(of_0_2_0):
    scene = of_0_2_0
    assert scene.texts() == [
        "plan a trip to <b>Japan</b>",
        "Gladly. The cherry blossom is in April.",
        "Bash npm test",
        "The tests fail.",
        "never mind",
        "As you like.",
        "paint the boat green",
        "It is green.",
        "and the oars",
        "They are white.",
        "paint the boat green",
        "It is green.",
        "another colour",
        "Blue, then.",
        "later, the sail",
        "It is red.",
    ]
    assert sorted((one.id, one.status) for one in scene.conversations()) == [
        (1, "archived"),
        (2, "skipped"),
        (3, "skipped"),
        (4, "skipped"),
    ]
    assert [hit.conversation.session_id[-1] for hit in scene.store.search("boat", EVERYTHING)] == [
        "2"
    ]
    with closing(StoredQueue(str(scene.database))) as queue:
        assert queue.waiting("summary", 1 << 62, ("archived",)) == []
        assert queue.accounts.of_day(1_790_003_600_000) == 780


def test_a_store_of_0_2_0_is_as_one_that_is_made_now_and_goes_on(of_0_2_0, tmp_path):
    scene = of_0_2_0
    assert (
        schema.differences(scene.store.connection),
        schema.complete(scene.store.connection, ""),
    ) == ([], [])
    with closing(Scene(tmp_path / "new").store) as new:
        for sql in (
            'SELECT s.type, s.name, c.name, c.type, c."notnull", c.pk FROM sqlite_schema AS s, '
            "pragma_table_info(s.name) AS c WHERE s.type = 'table' ORDER BY 2, 3",
            "SELECT type, name, CASE WHEN type = 'view' THEN sql END FROM sqlite_schema ORDER BY 1, 2",
        ):
            assert read(scene, sql) == new.connection.execute(sql).fetchall()
    known = scene.store.file_states("")["-srv-agent/5e55a0f1-0000-4000-8000-000000000003.jsonl"]
    grown = put(scene, known, known, said("a zebra", 200_000), said("a lion", 200_000))
    assert (grown.id, grown.next_ordinal) == (3, 6)
    assert put(scene, None, state("new"), said("an owl")).id == 4
    scene.store.forget("", "-srv-agent/new.jsonl")
    assert put(scene, None, state("newer"), said("an owl")).id == 5, "no id is used again"
    assert {hit.entry.text for hit in scene.store.search("zebra owl", EVERYTHING)} == {
        "a zebra",
        "an owl",
    }
