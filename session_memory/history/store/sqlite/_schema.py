"""The store's database: opening, creating and updating it. Its tables are in schema.sql."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from ....common.system.files import read_whole
from ....common.system.sqlite import (
    Connection,
    CorruptDatabaseError,
    Database,
    Migration,
    Patience,
    explained,
    fetch,
    writing,
)
from . import redaction
from .queue_file import highest_conversation

TOKENIZER = "porter unicode61 remove_diacritics 2"  # as in schema.sql
TRANSCRIPTS = "SELECT id FROM memory_file_states WHERE source != 'archive' AND status != 'gone'"
# 0.1 and 0.2.0 lack the second table: they had other tables, and the queue among them
REQUIRED = ("create_store", "move_queue")


def create_store(connection: Connection) -> None:
    """Create all tables and views.

    Ids of conversations in the queue of a former store are not used again."""
    connection.execute(_schema())
    connection.execute("INSERT INTO memory_store SELECT random()")
    redaction.keep(
        connection, redaction.Redaction(redaction.rule_set(), 0, is_changed=False, is_done=True)
    )
    if connection.filename:  # not in memory
        connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('memory_conversations', ?)",
            (highest_conversation(connection.filename),),
        )


def adding(name: str, *tables: str) -> Callable[[Connection], None]:
    """Return a migration that adds tables to stores without them.

    With no tables it does nothing, for a migration that all supported stores already have on
    record."""

    def add(connection: Connection) -> None:
        for table in tables:
            _add_table(connection, table)

    add.__name__ = name
    return add


def add_unread_lines(connection: Connection) -> None:
    """Add the table of lines to be read, for stores without it.

    It gets the lines of all sub-agents, and of all files except those that 0.3.0 has hashed."""
    tables = fetch(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    if ("memory_unread_lines",) in tables:
        return
    connection.execute(_table("memory_unread_lines"))
    connection.execute("INSERT INTO memory_unread_lines SELECT id, NULL FROM memory_file_states")
    if ("memory_files_without_lines",) in tables:
        without = "SELECT file_id FROM memory_files_without_lines"
        connection.execute(
            f"UPDATE memory_unread_lines SET since = 0 WHERE file_id NOT IN ({without})"
        )
        connection.execute("DROP TABLE memory_files_without_lines")


def add_sub_agent_calls(connection: Connection) -> None:
    """Add the table of sub-agents' calls, for stores without it.

    All lines are read again, because a call's commits were not stored before."""
    _add_table(connection, "memory_sub_agent_calls")
    connection.execute(
        "INSERT OR REPLACE INTO memory_unread_lines SELECT id, NULL FROM memory_file_states"
    )


def widen_session_index(connection: Connection) -> None:
    """Add columns to the index of sessions, with which a session can be salvaged after damage."""
    connection.execute("DROP INDEX IF EXISTS memory_file_states_session")
    connection.execute(_index("memory_file_states_session"))


def add_unread_words(connection: Connection) -> None:
    """Add the table of files to read once more, with all transcripts, for stores without it."""
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'memory_unread_words'"):
        connection.execute(_table("memory_unread_words"))
        connection.execute(f"INSERT INTO memory_unread_words {TRANSCRIPTS}")


def widen_view_of_entries(connection: Connection) -> None:
    """Give the view `entries` the columns `source_file` and `tool_names`."""
    connection.execute("DROP VIEW IF EXISTS entries")
    connection.execute(dict(_statements())["entries"])


def index_words_whole(connection: Connection) -> None:
    """Rebuild the index of texts with vowel signs and other marks.

    Earlier versions split words there. The index of all other texts stays."""
    from ....common.text.marks import folded
    from ...search.index import spaced

    _index_anew(connection, spaced, lambda text: folded(spaced(text)))


def index_one_form_of_letters(connection: Connection) -> None:
    """Rebuild the index of texts with ligatures, ß, half-width or full-width letters and the like.

    They get the form that search compares. The index of all other texts stays."""
    from ....common.text.marks import folded
    from ...search.index import indexable, spaced

    _index_anew(connection, lambda text: folded(spaced(text)), indexable)


def _index_anew(
    connection: Connection, before: Callable[[str], str], after: Callable[[str], str]
) -> None:
    """Rebuild the index of non-ASCII texts whose form `before` differs from `after`."""
    for table, column in (
        ("memory_transcript_entries", "content"),
        ("memory_tool_uses", "argument"),
    ):
        beyond_ascii = (
            f"SELECT id, {column} FROM {table} WHERE octet_length({column}) > length({column})"
        )
        for item, text in connection.execute(beyond_ascii):
            if (new := after(text)) != (old := before(text)):
                delete = (
                    "INSERT INTO memory_search (memory_search, rowid, text) VALUES ('delete', ?, ?)"
                )
                connection.execute(delete, (item, old))
                connection.execute(
                    "INSERT INTO memory_search (rowid, text) VALUES (?, ?)", (item, new)
                )
    for number, *texts in fetch(
        connection, "SELECT number, title, subject, content, quote FROM memories"
    ):
        if (new_texts := [after(text) for text in texts]) != [before(text) for text in texts]:
            sql = (
                "UPDATE memories_search SET title = ?, subject = ?, content = ?, quote = ? "
                "WHERE rowid = ?"
            )
            connection.execute(sql, (*new_texts, number))


def add_advisors(connection: Connection) -> None:
    """Note which answers are an advisor's; transcripts are counted once more for it."""
    known = "SELECT 1 FROM pragma_table_info('memory_counted_answers') WHERE name = 'is_advisor'"
    if not fetch(connection, known):
        connection.execute("DROP TABLE memory_counted_answers")
        _add_table(connection, "memory_counted_answers")
        connection.execute("DELETE FROM memory_counted_files")


def read_whole_lines(connection: Connection) -> None:
    """Have the lines of Claude Code's edits read again, because parts of lines were stored."""
    connection.execute(
        "INSERT OR REPLACE INTO memory_unread_lines SELECT id, NULL FROM memory_file_states "
        "WHERE source = 'claude-code'"
    )


# Each runs once, in one transaction with its record.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    create_store,
    *map(
        adding,
        (
            *("add_exclusions", "add_unread_files", "leave_out_lookups", "renew_views"),
            *("add_redaction", "identify_files", "add_foreign_items", "move_queue"),
        ),
    ),
    adding("add_written_lines", "memory_written_lines"),
    add_unread_lines,
    adding("add_salvages", "memory_incomplete_files", "memory_salvages"),
    widen_session_index,
    add_unread_words,
    index_words_whole,
    index_one_form_of_letters,
    add_sub_agent_calls,
    widen_view_of_entries,
    adding("add_counted_files", "memory_counted_files", "memory_counted_answers"),
    add_advisors,
    read_whole_lines,
)


class StoreFile(Database):
    """The database of a store at `path`, created if missing.

    Raises DatabaseError, and CorruptDatabaseError if it is corrupt, outdated or not ours."""

    REQUIRED = REQUIRED

    def __init__(self, path: str, patience: Patience | None = None) -> None:
        super().__init__(path, MIGRATIONS, patience)


def complete(connection: Connection, path: str) -> list[str]:
    """Rebuild missing views and indexes, and return their names.

    Raises CorruptDatabaseError, DatabaseError."""
    with explained(path):
        there = {name for (name,) in fetch(connection, "SELECT name FROM sqlite_schema")}
        missing = {name: statement for name, statement in _statements() if name not in there}
        for name, statement in missing.items():
            if f"TABLE {name}" in statement:
                raise CorruptDatabaseError(f"{path}: its table {name} is missing")
        if missing:
            with writing(connection):
                for name, statement in missing.items():
                    connection.execute(statement.replace(name, f"IF NOT EXISTS {name}", 1))
    return [*missing]


def fault_of_file(connection: Connection, path: str, migrations: Sequence[Migration]) -> str:
    """Return the fault of an open database, or ''.

    It is what SQLite finds corrupt, or what the database lacks compared to a new one with these
    migrations. Raises CorruptDatabaseError, DatabaseError."""
    with explained(path):
        [(verdict,), *_] = fetch(connection, "PRAGMA quick_check(1)")
        return verdict if verdict != "ok" else next(iter(differences(connection, migrations)), "")


def differences(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """Return the differences of a database's tables from a new database's."""
    import apsw

    sql = (
        "SELECT made.name, field.name FROM sqlite_schema AS made, pragma_table_info(made.name) "
        "AS field "
        "WHERE made.type = 'table' AND made.name NOT LIKE 'sqlite_%'"
    )
    fresh = apsw.Connection(":memory:")
    try:
        for migration in migrations:
            migration(fresh)
        missing = set(fetch(fresh, sql)) - set(fetch(connection, sql))
    finally:
        fresh.close()
    return [f"its table {table} has no {column}" for table, column in sorted(missing)]


def _add_table(connection: Connection, name: str) -> None:
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)):
        connection.execute(_table(name))


def _table(name: str) -> str:
    return "".join(_schema().partition(f"CREATE TABLE {name} ")[1:]).partition(";")[0]


def _index(name: str) -> str:
    return "".join(_schema().partition(f"CREATE INDEX {name} ")[1:]).partition(";")[0]


def _statements() -> Iterator[tuple[str, str]]:
    """Yield the name of each table, index and view, and the statement that creates it."""
    for text in _schema().split("\nCREATE ")[1:]:
        _, name, _ = text.removeprefix("VIRTUAL ").split(maxsplit=2)
        yield name, "CREATE " + text.partition(";\n")[0]


def _schema() -> str:
    return read_whole(os.path.join(os.path.dirname(__file__), "schema.sql")).decode()
