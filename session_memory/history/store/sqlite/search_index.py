"""`search.index.SearchIndex` in SQLite: the FTS5 index of all text, and the tables beside it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Any

from ....common.system.sqlite import Connection, fetch
from ....common.text.marks import folded
from ...search.index import (
    ConversationRange,
    ConversationTable,
    Expression,
    Scope,
    Terms,
    TextStart,
    Words,
)
from ...search.ranking import length_norms
from ..values import ITEM_BITS, TOOL_ROLE, Conversation, Filter, StoredEntry, Visible, joined
from ._schema import TOKENIZER
from .exclusions import item_shown
from .rows import CONVERSATIONS, conversation_columns, conversation_of, ids_of, items_of, where

MOST_RANGES = 40  # more are not asked for one by one
LITERAL_ITEMS = 20_000  # whose texts are scanned for text that is no term


class KnownTables:
    """A cache of the table of conversations.

    With a million entries, reading the table takes as long as the search."""

    def __init__(self) -> None:
        self._version: tuple[int, int] | None = None
        self._table = ConversationTable([], [], [], [])

    def of(self, connection: Connection) -> ConversationTable:
        version = (connection.execute("PRAGMA data_version").get, connection.total_changes())
        if version != self._version:
            # In the order of the rows, because the order of an index would read each row
            # separately.
            sql = """
                SELECT first_item, last_item - first_item + 1, coalesce(last_message_at, 0), text_bytes
                FROM memory_conversations NOT INDEXED
            """
            rows = sorted(fetch(connection, sql))
            starts, counts, ends, sizes = ([row[column] for row in rows] for column in range(4))
            self._table = ConversationTable(starts, counts, ends, length_norms(sizes))
            self._version = version
        return self._table


class SqliteSearchIndex:
    """The index (see SearchIndex).

    `tables` belongs to the connection; `excluding` leaves out excluded items."""

    def __init__(
        self,
        connection: Connection,
        tables: KnownTables,
        visible: Visible = None,
        *,
        excluding: bool = False,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._visible = visible
        self._excluding = excluding
        self.terms = terms_of(connection)

    def snapshot(self) -> Connection:
        return self._connection  # as a context manager: a savepoint

    def files(self, wanted: Filter) -> tuple[list[int], int] | None:
        visible = self._visible
        if visible is not None:  # of several, it is not noticed that one has all files
            sql = (
                "SELECT (SELECT min(home) FROM memory_file_states), (SELECT max(home) FROM "
                "memory_file_states)"
            )
            first, last = self._connection.execute(sql).get
            if first == last and first in visible:
                visible = None
        times = ("f.first_entry_timestamp", "f.last_entry_timestamp")
        condition, values = where(wanted._replace(status=""), visible, times)
        if condition == "true":
            return None
        sql = f"SELECT f.id FROM memory_file_states AS f WHERE {condition} ORDER BY f.id DESC"
        newest = self._connection.execute("SELECT max(id) FROM memory_file_states").get
        return _column(self._connection.execute(sql, values)), newest or 0

    def items_with(self, expression: Expression, scope: Scope, newest: int = 0) -> list[int]:
        match = match_of(expression)
        shown = f" AND {item_shown('memory_search.rowid')}" if self._excluding else ""
        sql = "SELECT rowid FROM memory_search WHERE memory_search MATCH ?"
        execute = self._connection.execute
        # no condition for all files: a range, even one with all items, takes 1.4 times as long
        if scope.files is None and not newest:
            return _column(execute(sql + shown, (match,)))
        sql += f" AND rowid BETWEEN ? AND ?{shown}"
        if newest:
            sql += " ORDER BY rowid DESC"
        if len(scope.ranges) <= MOST_RANGES or scope.files is None:
            items: list[int] = []
            for first, last in scope.ranges if newest else reversed(scope.ranges):
                limit = f" LIMIT {newest - len(items)}" if newest else ""
                items += _column(execute(sql + limit, (match, first, last)))
        else:
            rows = execute(sql, (match, scope.ranges[-1][0], scope.ranges[0][1]))
            within = (item for (item,) in rows if item >> ITEM_BITS in scope.files)
            items = list(islice(within, newest or None))
        return sorted(items) if newest else items

    def left_out(self, expression: Expression, scope: Scope) -> int:
        return 0

    def count_with(self, expression: Expression) -> int:
        sql = "SELECT count(*) FROM memory_search WHERE memory_search MATCH ?"
        counted: int = self._connection.execute(sql, (match_of(expression),)).get
        return counted

    def size(self) -> tuple[int, float]:
        items, terms = index_size(self._connection)
        return items, terms / max(1, items)

    def items_saying(self, text: str, scope: Scope) -> list[int]:
        shown = f"AND {item_shown('id')} " if self._excluding else ""
        sql = (
            "SELECT id FROM (SELECT id, content FROM memory_transcript_entries "
            f"WHERE id BETWEEN ? AND ? {shown}ORDER BY id DESC LIMIT ?"
            ") WHERE instr(content, ?)"
        )
        ranges = scope.ranges[:MOST_RANGES]
        each = LITERAL_ITEMS // max(1, len(ranges))
        return [
            item
            for first, last in ranges
            for item in _column(self._connection.execute(sql, (first, last, each, text)))
        ]

    def fitting(self, items: list[int], wanted: Filter) -> list[int]:
        tables = []
        if wanted.role != TOOL_ROLE and not wanted.kind:
            tables.append(("memory_transcript_entries", "role", wanted.role))
        if wanted.role in ("", TOOL_ROLE):
            tables.append(("memory_tool_uses", "kind", wanted.kind))
        ids, since, until = ids_of(items), wanted.since, wanted.until
        kept: set[int] = set()
        for table, column, value in tables:
            condition, values = joined(
                (since is not None, "coalesce(timestamp, ?) >= ?", (since, since)),
                (until is not None, "coalesce(timestamp, ?) <= ?", (until, until)),
                (value, f"{column} = ?", (value,)),
            )
            sql = f"SELECT id FROM {table} WHERE id IN carray(?) AND {condition}"
            kept.update([item for (item,) in fetch(self._connection, sql, (ids, *values))])
        return [item for item in items if item in kept]

    def table(self) -> ConversationTable:
        return self._tables.of(self._connection)

    def conversations_at(self, starts: Iterable[int], wanted: Filter) -> list[ConversationRange]:
        condition, values = where(wanted, self._visible)
        sql = (
            "SELECT c.first_item, c.last_item, c.id, coalesce(c.last_message_at, 0), c.session_id "
            "FROM memory_conversations AS c CROSS JOIN memory_file_states AS f ON f.id = c.file_id "
            f"WHERE {condition} AND c.first_item IN carray(?)"
        )
        return [
            ConversationRange._make(row)
            for row in fetch(self._connection, sql, (*values, ids_of(starts)))
        ]

    def text_starts(self, items: Iterable[int], characters: int) -> dict[int, TextStart]:
        sql = """
            SELECT id, substr(content, 1, ?2), octet_length(content), 0
            FROM memory_transcript_entries WHERE id IN carray(?1)
            UNION ALL SELECT id, substr(argument, 1, ?2), octet_length(argument), 1
            FROM memory_tool_uses WHERE id IN carray(?1)
        """
        rows = fetch(self._connection, sql, (ids_of(items), characters))
        return {item: TextStart(text, size, bool(is_tool)) for item, text, size, is_tool in rows}

    def items(self, ids: Iterable[int]) -> dict[int, StoredEntry]:
        return items_of(self._connection, ids)

    def conversations(self, ids: Iterable[int]) -> dict[int, Conversation]:
        sql = (
            f"SELECT {conversation_columns(self._excluding)} FROM {CONVERSATIONS} WHERE c.id "
            f"IN carray(?)"
        )
        return {
            row[0]: conversation_of(row) for row in fetch(self._connection, sql, (ids_of(ids),))
        }


def match_of(expression: Expression) -> str:
    """Return an expression in FTS5's syntax, with parentheses for all precedence."""

    def any_of(choices: Iterable[Words]) -> str:
        every = [
            " AND ".join([f'"{folded(word)}"' for word in words.each]) + " *" * words.is_prefix
            for words in choices
        ]
        return f"({' OR '.join(every)})"

    phrases = [[*expression.parts]] if expression.parts else []
    match = " AND ".join(map(any_of, phrases + [[words] for words in expression.required]))
    return f"({match}) NOT {any_of(expression.unwanted)}" if expression.unwanted else match


def terms_of(connection: Connection) -> Terms:
    """Return the function that splits text into terms with the index's tokenizer."""
    import apsw

    name, *arguments = TOKENIZER.split()
    tokenize: Any = partial(connection.fts5_tokenizer(name, arguments), include_colocated=False)
    reason = apsw.FTS5_TOKENIZE_DOCUMENT
    return Terms(
        lambda utf8: tokenize(utf8, reason, None, include_offsets=False),
        lambda utf8: tokenize(utf8, reason, None),
    )


def local_terms() -> Terms:
    """Return the same function without a store, for a team's index.

    A team uses the tokenizer of each machine's own store."""
    import apsw

    return terms_of(apsw.Connection(":memory:"))


def _column(cursor: Any) -> list[int]:
    """Return the only column of all rows at once; row by row takes longer than the query itself."""
    value = cursor.get
    return value if isinstance(value, list) else [] if value is None else [value]


def index_size(connection: Connection) -> tuple[int, int]:
    """Return the numbers of texts and of terms: the first varints of FTS5's first record."""
    numbers = [0]
    for byte in connection.execute("SELECT block FROM memory_search_data WHERE id = 1").get or b"":
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(0)
    return numbers[0], numbers[1] if len(numbers) > 1 else 0
