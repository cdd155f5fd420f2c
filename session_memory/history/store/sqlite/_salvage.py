"""Copies every readable row of a damaged store into a new one.

A damaged page loses only its own rows. Lost rows are read again from the transcript, if it still
exists, else from the archive: take_archives adds these to sessions in `memory_incomplete_files`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

from ....common.system import sqlite
from ....common.system.sqlite import Connection, fetch
from ....common.system.sqlite_pages import TABLE_LEAF, DamagedRowError, DatabasePages, record_of
from ....common.text.timestamps import now_milliseconds
from ...search.index import indexable
from ..values import ENTRY_ROLES, ITEM_BITS, KINDS, NUMBERS, STATUSES
from . import _writer as writer
from . import redaction
from ._conversations import rebuild_file
from ._schema import TRANSCRIPTS, StoreFile
from .queue_file import open_queue, path_of
from .unchanged import gap_minutes

Row = list[Any]


_STATES, _ENTRIES, _TOOLS = "memory_file_states", "memory_transcript_entries", "memory_tool_uses"
_SHARED, _KEYS, _CONVERSATIONS = "memory_shared_items", "memory_item_keys", "memory_conversations"
_LINES, _EXCLUDED_FILES, _EXCLUDED_ITEMS = (
    "memory_written_lines",
    "memory_excluded_files",
    "memory_excluded_items",
)
_AGENT_CALLS, _WORDS = "memory_sub_agent_calls", "memory_unread_words"
_WORK, _SPENDING = "memory_work", "memory_spending"
_TABLES = (
    *(
        _STATES,
        _ENTRIES,
        _TOOLS,
        _SHARED,
        _KEYS,
        _CONVERSATIONS,
        _LINES,
        _EXCLUDED_FILES,
        _EXCLUDED_ITEMS,
    ),
    *("memory_store", "memory_unread_lines", "memory_foreign_items", "memory_redaction"),
    *("memory_incomplete_files", "memory_salvages", _AGENT_CALLS, _WORDS),
)
_INDEXED = 9  # values in a row of the index of sessions, with the id of the file
_FIRST_ITEM = 1 << ITEM_BITS  # the lowest id of an item
# A row outside all trees shows in this way which table it belongs to.
_IS_OF: dict[str, Callable[[Row], bool]] = {
    _STATES: lambda row: row[6] in ("idle", "ingesting", "gone"),
    _ENTRIES: lambda row: row[0] >= _FIRST_ITEM and row[4] in ENTRY_ROLES,
    _TOOLS: lambda row: row[0] >= _FIRST_ITEM and row[6] in KINDS,
    _SHARED: lambda row: row[0] >= _FIRST_ITEM and row[1] >= _FIRST_ITEM,
    "memory_foreign_items": lambda row: row[0] >= _FIRST_ITEM,
    _CONVERSATIONS: lambda row: row[11] in STATUSES,
}
_ITEMS = f"SELECT id FROM {_ENTRIES} UNION ALL SELECT id FROM {_TOOLS}"
_INDEX = f"""
    SELECT id, content FROM {_ENTRIES} UNION ALL SELECT id, argument FROM {_TOOLS} WHERE argument != ''
"""


class Salvaged(NamedTuple):
    """The numbers of salvaged messages and tool uses, and of items that are on no readable page."""

    entries: int
    tool_uses: int
    lost: int


class _Table(NamedTuple):
    """A table: its columns, and the column that is the row's id (-1: none).

    A column has a type, whether it may be NULL, and its default as SQL."""

    name: str
    columns: list[tuple[str, str, bool, str]]
    id_column: int

    def row(self, row_id: int, values: Row) -> Row | None:
        """Return a stored row with its id; None if it cannot belong to this table."""
        values = [*values, *[None] * (len(self.columns) - len(values))]
        if len(values) != len(self.columns):
            return None
        if self.id_column >= 0:
            values[self.id_column] = row_id
        return values if all(map(_fits, values, self.columns)) else None


def _fits(value: Any, column: tuple[str, str, bool, str]) -> bool:
    _, type, is_optional, _ = column
    return is_optional if value is None else isinstance(value, str if type == "TEXT" else int)


def salvage(path: str, place: str) -> Salvaged:
    """Make a store at `place` from the readable rows of the one at `path`.

    Raises DatabaseError, OSError."""
    source = _DamagedStore(path)
    with closing(source), closing(StoreFile(place)) as made:
        with made.transaction() as connection:
            _copy(source, connection)
            _restore_states(source, connection)
            _drop_homeless(connection)
            lost = _lost_items(source, connection)
            connection.executemany(
                "INSERT INTO memory_search (rowid, text) VALUES (?, ?)",
                ((item, indexable(text)) for item, text in connection.execute(_INDEX)),
            )
            for file_id in _files_to_read_again(source, connection, lost):
                writer.remove(connection, file_id)
            _mend_conversations(source, connection)
            counts = [
                fetch(connection, f"SELECT count(*) FROM {table}")[0][0]
                for table in (_ENTRIES, _TOOLS)
            ]
            salvaged = Salvaged(counts[0], counts[1], sum(lost.values()))
            row = (path, now_milliseconds(), *salvaged)
            connection.execute("INSERT OR REPLACE INTO memory_salvages VALUES (?, ?, ?, ?, ?)", row)
        made.connection.execute("PRAGMA wal_checkpoint(truncate)")
    return salvaged


def salvage_queue(path: str, database: str) -> None:
    """Copy readable rows of the queue and the token accounts into the queue of `database`.

    A store of 0.2.0 had them among its own tables. Raises DatabaseError."""
    with closing(_DamagedStore(path)) as source, closing(open_queue(database)) as queue:
        work, spending = [_table_of(queue.connection, name) for name in (_WORK, _SPENDING)]
        names = [name for name, *_ in work.columns]
        began, seen, result = map(names.index, ("first_message_at", "seen_until", "result"))
        name, type, _, default = work.columns[began]
        work.columns[began] = (name, type, True, default)  # there it was optional
        rows = [[*row[:began], row[began] or 0, *row[began + 1 :]] for row in source.rows(work)]
        # of two rows about a conversation, the more advanced one replaces the other
        rows.sort(key=lambda row: (row[result] is not None, row[seen] or 0))
        with queue.transaction() as connection:
            for table, values in ((work, rows), (spending, source.rows(spending))):
                marks = ", ".join("?" * len(table.columns))
                connection.executemany(f"REPLACE INTO {table.name} VALUES ({marks})", values)
    with suppress(OSError):
        os.unlink(f"{path_of(database)}.jsonl")  # the copy that 0.2.0 kept


class _DamagedStore:
    """Reads the tables of a damaged store: with SQLite, or page by page where it is damaged.

    `damaged` has the names of incomplete tables, `absent` of tables that it never had. `has_schema`
    means that the pages of each table are known."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pages: DatabasePages | None = None
        self._roots: dict[str, int] = {}
        self._strays: list[tuple[int, Row]] = []
        self.damaged: set[str] = set()
        self.absent: set[str] = set()
        self.has_schema = True
        self._connection: Connection | None = None
        try:
            self._connection = sqlite.open_file(path, read_only=True)
        except Exception:  # every error of the file means: page by page
            self._connection = None

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        if self._pages:
            self._pages.close()

    def pragma(self, name: str) -> int:
        """Return a number of the database's header; 0 if it cannot be read."""
        try:
            return int(self._connection.pragma(name)) if self._connection else 0
        except Exception:
            return 0

    def rows(self, table: _Table) -> Iterator[Row]:
        """Yield the readable rows of a table, some perhaps twice."""
        import apsw

        try:
            if self._connection is None:
                raise apsw.CorruptError
            there = {
                name
                for (name,) in fetch(
                    self._connection, f"SELECT name FROM pragma_table_info('{table.name}')"
                )
            }
            shown = [name if name in there else default for name, *_, default in table.columns]
            for values in self._connection.execute(f"SELECT {', '.join(shown)} FROM {table.name}"):
                if row := table.row(values[table.id_column], [*values]):
                    yield row
                else:
                    self.damaged.add(table.name)
        except apsw.SQLError:  # the table does not exist, or an earlier version made it
            self.damaged.add(table.name)
            self.absent.add(table.name)
        except (apsw.Error, UnicodeDecodeError):
            self.damaged.add(table.name)
            yield from self._rows_on_pages(table)

    def _rows_on_pages(self, table: _Table) -> Iterator[Row]:
        pages = self._read_pages()
        is_of = _IS_OF.get(table.name)
        rows: list[Row] = []
        if table.name in self._roots:
            for row_id, values in _records(pages.tree(self._roots[table.name], set())):
                if row := table.row(row_id, values):
                    rows.append(row)
        if is_of:
            strays = (table.row(row_id, values) for row_id, values in self._strays)
            rows += [row for row in strays if row and is_of(row)]
        return (
            reversed(sorted(rows, key=lambda row: row[0])) if table.name == _STATES else iter(rows)
        )

    def index_rows(self, name: str) -> list[Row]:
        """Return the readable rows of an index: its columns, and the id of the row."""
        pages = self._read_pages()
        return (
            [values for _, values in _records(pages.tree(self._roots[name], set()))]
            if name in self._roots
            else []
        )

    def _read_pages(self) -> DatabasePages:
        """Find the trees of all tables, and the rows on pages that belong to no tree."""
        if self._pages is not None:
            return self._pages
        self._pages = pages = DatabasePages(self._path)
        reached: set[int] = set()
        schema = [values for _, values in _records(pages.tree(1, reached)) if len(values) == 5]
        self._roots = {row[1]: row[3] for row in schema if isinstance(row[3], int) and row[3]}
        self.has_schema = _STATES in self._roots
        for root in self._roots.values():
            for _ in pages.tree(root, reached):
                pass
        free = pages.free() or set()
        strays = [at for at in range(2, pages.count + 1) if at not in reached and at not in free]
        for number in strays:
            if pages.kind(number) == TABLE_LEAF:
                self._strays += _records(pages.rows_on(number))
        return pages


def _records(cells: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Row]]:
    for row_id, payload in cells:
        try:
            yield row_id, record_of(payload)
        except DamagedRowError:
            continue


def _copy(source: _DamagedStore, connection: Connection) -> None:
    """Copy the readable rows of all tables."""
    for table in map(lambda name: _table_of(connection, name), _TABLES):
        if table.name in ("memory_store", "memory_redaction"):
            connection.execute(f"DELETE FROM {table.name}")
        marks = ", ".join("?" * len(table.columns))
        connection.executemany(
            f"INSERT OR IGNORE INTO {table.name} VALUES ({marks})", source.rows(table)
        )
    connection.execute(
        "INSERT INTO memory_store SELECT random() WHERE NOT EXISTS (SELECT 1 FROM memory_store)"
    )
    if not fetch(connection, "SELECT 1 FROM memory_redaction"):
        rules = redaction.rule_set()
        redaction.keep(connection, redaction.Redaction(rules, 0, is_changed=False, is_done=False))
    if _LINES in source.damaged:
        connection.execute(f"DELETE FROM {_LINES}")
        connection.execute(
            f"INSERT OR REPLACE INTO memory_unread_lines SELECT id, NULL FROM {_STATES}"
        )
    if _WORDS in source.absent:  # an earlier version ingested the transcripts
        connection.execute(f"INSERT OR IGNORE INTO {_WORDS} {TRANSCRIPTS}")
    if _AGENT_CALLS in source.damaged:
        connection.execute(f"INSERT OR IGNORE INTO memory_unread_lines SELECT id, 0 FROM {_STATES}")
    connection.execute(f"PRAGMA user_version = {source.pragma('user_version'):d}")


def _table_of(connection: Connection, name: str) -> _Table:
    sql = (
        "SELECT name, type, \"notnull\", coalesce(dflt_value, 'NULL'), pk FROM pragma_table_info(?)"
    )
    columns = fetch(connection, sql, (name,))
    [(statement,)] = fetch(connection, "SELECT sql FROM sqlite_schema WHERE name = ?", (name,))
    keys = [
        number
        for number, (_, type, _, _, is_key) in enumerate(columns)
        if is_key and type == "INTEGER"
    ]
    id_column = keys[0] if len(keys) == 1 and "WITHOUT ROWID" not in statement else -1
    shown = [(column, type, not is_set, default) for column, type, is_set, default, _ in columns]
    return _Table(name, shown, id_column)


def _restore_states(source: _DamagedStore, connection: Connection) -> None:
    """Make states for files that lost theirs, from the index of sessions.

    A transcript that still exists is read again from its beginning."""
    if _STATES not in source.damaged:
        return
    known = {file_id for (file_id,) in fetch(connection, f"SELECT id FROM {_STATES}")}
    times = (
        f"SELECT min(first_message_at), max(last_message_at), max(last_item) FROM "
        f"{_CONVERSATIONS} WHERE file_id = ?"
    )
    for row in source.index_rows("memory_file_states_session"):
        if len(row) != _INDEXED or not isinstance(row[-1], int) or row[-1] in known:
            continue
        session_id, home, path, root, runtime, cwd, title, rank, file_id = row
        [(began, ended, last)] = fetch(connection, times, (file_id,))
        next_number = ((last or 0) & NUMBERS) + bool(last)
        status = "idle" if os.path.exists(f"{root}/{path}") else "gone"
        connection.execute(
            f"INSERT OR IGNORE INTO {_STATES} (id, home, file_path, root, source, session_id, "
            f"status, cwd, title, "
            "title_rank, first_entry_timestamp, last_entry_timestamp, next_ordinal, "
            "last_modified, file_size, "
            "last_processed_offset, generation, inode, head, tail, unreadable) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 2, 0, 0, 0, 0)",
            (
                *row[-1:],
                home,
                path,
                root,
                runtime,
                session_id,
                status,
                cwd,
                title,
                rank,
                began,
                ended,
                next_number,
            ),
        )


def _drop_homeless(connection: Connection) -> None:
    """Drop items and conversations of unknown files, and copies of lost originals."""
    for table in (_ENTRIES, _TOOLS, _KEYS, _SHARED, "memory_foreign_items"):
        connection.execute(
            f"DELETE FROM {table} WHERE id >> {ITEM_BITS} NOT IN (SELECT id FROM {_STATES})"
        )
    connection.execute(
        f"DELETE FROM {_AGENT_CALLS} WHERE item >> {ITEM_BITS} NOT IN (SELECT id FROM {_STATES})"
    )
    connection.execute(
        f"DELETE FROM {_CONVERSATIONS} WHERE file_id NOT IN (SELECT id FROM {_STATES})"
    )
    connection.execute(
        f"DELETE FROM memory_incomplete_files WHERE file_id NOT IN (SELECT id FROM {_STATES})"
    )
    connection.execute(f"DELETE FROM {_SHARED} WHERE original NOT IN ({_ITEMS})")
    connection.execute(f"DELETE FROM {_KEYS} WHERE id NOT IN ({_ITEMS})")


def _lost_items(source: _DamagedStore, connection: Connection) -> dict[int, int]:
    """Return how many items of each file are lost."""
    expected = f"SELECT file_id, sum(last_item - first_item + 1) FROM {_CONVERSATIONS} GROUP BY 1"
    if _CONVERSATIONS in source.damaged:
        expected = f"SELECT id, next_ordinal FROM {_STATES}"
    there = dict(
        fetch(
            connection,
            f"SELECT id >> {ITEM_BITS}, count(*) FROM ({_ITEMS} UNION ALL SELECT id FROM "
            f"{_SHARED}) GROUP BY 1",
        )
    )
    lost = {
        file_id: count - there.get(file_id, 0) for file_id, count in fetch(connection, expected)
    }
    return {file_id: count for file_id, count in lost.items() if count > 0}


def _files_to_read_again(
    source: _DamagedStore, connection: Connection, lost: dict[int, int]
) -> list[int]:
    """Return the files to remove and read again, because their transcripts are unchanged.

    If a transcript has changed, it is read again beside the salvaged rows."""
    columns = "id, root, file_path, inode, generation, last_processed_offset"
    states = fetch(connection, f"SELECT {columns} FROM {_STATES} WHERE source != 'archive'")
    unchanged = {state[0] for state in states if _is_as_it_was_read(*state[1:])}
    for file_id in lost.keys() - unchanged:
        sql = (
            "INSERT INTO memory_incomplete_files VALUES (?1, ?2) ON CONFLICT DO UPDATE SET "
            "lost = lost + ?2"
        )
        connection.execute(sql, (file_id, lost[file_id]))
        sql = (
            f"UPDATE {_STATES} SET last_processed_offset = 0, file_size = 0, head = 0, tail = "
            f"0 WHERE id = ?"
        )
        connection.execute(sql, (file_id,))
    return sorted((lost.keys() & unchanged) | _without_keys(source, connection, unchanged))


def _without_keys(source: _DamagedStore, connection: Connection, unchanged: set[int]) -> set[int]:
    """Return the `unchanged` files with items that lost their keys, and files with copies of these.

    If all of them are read again together, no item is stored twice."""
    if _KEYS not in source.damaged:
        return set()
    keyless = f"SELECT id FROM ({_ITEMS}) WHERE id NOT IN (SELECT id FROM {_KEYS})"
    files = {
        file_id
        for (file_id,) in fetch(connection, f"SELECT DISTINCT id >> {ITEM_BITS} FROM ({keyless})")
    }
    sql = (
        f"SELECT DISTINCT original >> {ITEM_BITS}, id >> {ITEM_BITS} FROM {_SHARED} WHERE "
        f"original IN ({keyless})"
    )
    copies = fetch(connection, sql)
    stay = {original for original, copy in copies if copy not in unchanged}
    again = (files & unchanged) - stay
    return again | {copy for original, copy in copies if original in again}


def _is_as_it_was_read(root: str, path: str, inode: int, generation: int, offset: int) -> bool:
    try:
        status = os.stat(f"{root}/{path}")
    except OSError:
        return False
    return generation == 1 and status.st_ino == inode and status.st_size >= offset


def _mend_conversations(source: _DamagedStore, connection: Connection) -> None:
    """Cut conversations of items that lost theirs."""
    if _CONVERSATIONS in source.damaged:
        for (file_id,) in fetch(connection, f"SELECT id FROM {_STATES}"):
            rebuild_file(connection, file_id, gap_minutes(connection) * 60_000)
