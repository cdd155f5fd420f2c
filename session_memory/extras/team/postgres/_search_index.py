"""`search.index.SearchIndex` in PostgreSQL: items with a term, the newest first, and cached tables.

A segment has one row for each of its terms, in an index by term and segment; scanning it backwards
finds the newest segments with a term. docs/use/team.md explains why, and what else was measured.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.text.sanitize import plain
from ....history.search.index import (
    ConversationRange,
    ConversationTable,
    Expression,
    Scope,
    Terms,
    TextStart,
    Words,
)
from ....history.search.postings import both, either, without
from ....history.search.ranking import length_norms
from ....history.store.sqlite.search_index import local_terms
from ....history.store.values import (
    ITEM_BITS,
    NUMBERS,
    TOOL_ROLE,
    Conversation,
    Filter,
    StoredEntry,
    joined,
)
from ._session_push import ID_BYTES, clipped, unpacked
from .connection import TeamConnection
from .rows import (
    CONVERSATIONS,
    IS_SOUND,
    MOST_NUMBERS,
    conversation_of,
    entry_of,
    select_items,
    size_in,
    time_in,
    where,
)

if TYPE_CHECKING:
    from ....history.store.values import Visible

_NO_TEXT = TextStart("", 0, False)
MOST_SEGMENTS = 2000  # of those that have a term: the newest
MOST_ITEMS = 20_000  # of those that have a term: no more segments are read
WHOLE = 2_000_000  # texts: up to this many, nothing is omitted
LITERAL_ITEMS = 20_000  # whose texts are scanned for text that is not a term


class KnownTeam(NamedTuple):
    """The cached view of a member.

    It has a stamp of everything they see, the numbers of their sessions, of searchable texts and of
    terms, the sessions by segment, and the table of conversations."""

    version: tuple[int, ...]
    sessions: int
    texts: int
    terms: int
    segments: dict[int, frozenset[int]]
    table: ConversationTable


class TeamTables:
    """The table of conversations over a connection, reloaded when it has changed."""

    def __init__(self) -> None:
        self.terms = local_terms()
        self._snapshot = ""
        self._known: KnownTeam | None = None

    def of(self, connection: TeamConnection) -> KnownTeam:
        """Return the current view.

        If nothing was written on the server since, nothing is counted, because counting 100,000
        sessions takes as long as the rest of a search."""
        [(snapshot,)] = connection.execute("SELECT pg_current_snapshot()::text")
        if self._known is None or snapshot != self._snapshot:
            self._known = self._read(connection)
            self._snapshot = snapshot
        return self._known

    def _read(self, connection: TeamConnection) -> KnownTeam:
        sql = (
            "SELECT count(*), coalesce(max(id), 0), coalesce(sum(pushes), 0)::bigint, "
            f"coalesce(sum(greatest(text_count, 0)), 0)::bigint, "
            f"coalesce(sum({size_in('term_count')}), 0)::bigint "
            "FROM session"
        )
        version = connection.execute(sql).fetchone() or (0, 0, 0, 0, 0)
        if self._known and self._known.version == version:
            return self._known
        rows = connection.cursor(binary=True).execute(
            "SELECT segment, array_agg(id) FROM session GROUP BY segment"
        )
        segments = {segment: frozenset(ids) for segment, ids in rows}
        return KnownTeam(version, version[0], version[3], version[4], segments, _table(connection))


class PostgresSearchIndex:
    """The index for one search, which looks nothing up twice.

    The protocol describes the results of the methods."""

    def __init__(
        self, connection: TeamConnection, tables: TeamTables, visible: Visible = None
    ) -> None:
        self._connection = connection
        self._visible = visible
        self._tables = tables
        self._team: KnownTeam | None = None
        self._postings: dict[tuple[frozenset[int] | None, str, bool], tuple[list[int], int]] = {}
        self._matched: dict[tuple[frozenset[int] | None, Expression], list[int]] = {}
        self._left_out: dict[tuple[frozenset[int] | None, Expression], int] = {}
        self._older = 0
        self.terms: Terms = tables.terms

    @contextmanager
    def snapshot(self) -> Iterator[object]:
        with self._connection.transaction():
            self._team = self._tables.of(self._connection)
            yield self

    @property
    def _known(self) -> KnownTeam:
        assert self._team is not None, "a search reads within a snapshot"
        return self._team

    def files(self, wanted: Filter) -> tuple[list[int], int] | None:
        condition, values = where(wanted._replace(status=""), self._visible, of="s")
        if condition == "true":
            return None
        rows = self._rows(
            f"SELECT s.id FROM session AS s WHERE {condition} ORDER BY s.id DESC", values
        )
        return [id for (id,) in rows], self._known.sessions

    def items_with(self, expression: Expression, scope: Scope, newest: int = 0) -> list[int]:
        items = self._matching(scope.files, expression)
        return items[-newest:] if newest else items

    def left_out(self, expression: Expression, scope: Scope) -> int:
        return self._left_out.get((scope.files, expression), 0)

    def count_with(self, expression: Expression) -> int:
        return len(self._matching(None, expression))

    def size(self) -> tuple[int, float]:
        return self._known.texts, self._known.terms / max(1, self._known.texts)

    def _matching(self, files: frozenset[int] | None, expression: Expression) -> list[int]:
        """Return the items that match an expression, in order of id; if given, only of `files`."""
        key = files, expression
        if key not in self._matched:
            self._older = 0
            self._matched[key] = items_of(expression, self.terms, partial(self._items, files))
            self._left_out[key] = self._older
        return self._matched[key]

    def _items(
        self, files: frozenset[int] | None, term: str, is_prefix: bool, among: list[int] | None
    ) -> list[int]:
        """Return the items that have a term, in order of id; if given, only of `files`.

        In a large team only the newest are returned, unless `among` limits the items."""
        key = files, term, is_prefix
        if key not in self._postings:
            self._postings[key] = self._read_items(*key, None)
        items, older = self._postings[key]
        if older and among is not None:
            return self._read_items(*key, among)[0] if among else []
        self._older += older
        return items

    def _read_items(
        self, files: frozenset[int] | None, term: str, is_prefix: bool, among: list[int] | None
    ) -> tuple[list[int], int]:
        values: list[Any]
        condition, values = "term = %s", [clipped(term)]
        if is_prefix:
            condition, values = (
                "term >= %s AND term < %s",
                [term, term[:-1] + chr(ord(term[-1]) + 1)],
            )
        known = self._known
        segments = known.segments
        if files is not None:
            segments = {id: members for id, every in segments.items() if (members := every & files)}
        if among is not None:
            sessions = {item >> ITEM_BITS for item in among}
            segments = {
                id: every for id, every in segments.items() if not every.isdisjoint(sessions)
            }
        if files is not None or among is not None:
            condition += " AND segment = ANY(%s)"
            values.append(list(segments))
        most = MOST_ITEMS if among is None and known.texts > WHOLE else sys.maxsize // ID_BYTES
        sql = (
            "SELECT segment, items, bytes FROM (SELECT segment, items, "
            "sum(length(items)) OVER (ORDER BY segment DESC)::bigint - length(items) AS newer, "
            "sum(length(items)) OVER ()::bigint AS bytes "
            f"FROM posting WHERE {condition} AND length(items) <= {MOST_NUMBERS * ID_BYTES} "
            f"ORDER BY segment DESC LIMIT {MOST_SEGMENTS}) AS newest "
            f"WHERE newer < {most * ID_BYTES} ORDER BY segment DESC"
        )
        found_items: list[int] = []
        rows = self._rows(sql, values)
        for segment, items, _ in reversed(rows):
            found_items += unpacked(items, segments.get(segment, frozenset()))
        older = rows[0][2] - sum([len(items) for _, items, _ in rows]) if rows else 0
        return sorted(set(found_items)) if is_prefix else sorted(found_items), older // ID_BYTES

    def items_saying(self, text: str, scope: Scope) -> list[int]:
        condition = ""
        values: list[Any] = []
        if scope.files is not None:
            condition, values = " AND session = ANY(%s)", [list(scope.files)]
        sql = (
            f"SELECT id FROM (SELECT session << {ITEM_BITS} | number AS id, text FROM item "
            f"WHERE role != '{TOOL_ROLE}'{condition} "
            f"ORDER BY session DESC, number DESC LIMIT {LITERAL_ITEMS}) AS newest WHERE "
            f"strpos(text, %s) > 0"
        )
        return [id for (id,) in self._rows(sql, [*values, text])]

    def fitting(self, items: list[int], wanted: Filter) -> list[int]:
        since, until = wanted.since, wanted.until
        condition, values = joined(
            (wanted.role, "i.role = %s", (wanted.role,)),
            (wanted.kind, "i.kind = %s", (wanted.kind,)),
            (since is not None, "coalesce(i.at, %s) >= %s", (since, since)),
            (until is not None, "coalesce(i.at, %s) <= %s", (until, until)),
        )
        sql = (
            f"SELECT i.session << {ITEM_BITS} | i.number FROM item AS i JOIN {_NAMED} WHERE "
            f"{condition}"
        )
        kept = {id for (id,) in self._rows(sql, [*_named(items), *values])}
        return [item for item in items if item in kept]

    def table(self) -> ConversationTable:
        return self._known.table

    def conversations_at(self, starts: Iterable[int], wanted: Filter) -> list[ConversationRange]:
        condition, values = where(wanted, self._visible)
        sql = (
            f"SELECT c.session << {ITEM_BITS} | c.first_number, c.session << {ITEM_BITS} | "
            f"c.last_number, "
            f"c.session << {ITEM_BITS} | c.first_number, coalesce({time_in('c.last_at')}, 0), "
            f"s.session_id "
            f"FROM conversation AS c JOIN session AS s ON s.id = c.session AND {IS_SOUND} "
            f"JOIN {_NAMED_CONVERSATIONS} WHERE {condition}"
        )
        return [ConversationRange._make(row) for row in self._rows(sql, [*_named(starts), *values])]

    def text_starts(self, items: Iterable[int], characters: int) -> dict[int, TextStart]:
        sql = (
            f"SELECT i.session << {ITEM_BITS} | i.number, left(i.text, %s), octet_length(i.text), "
            f"i.role = '{TOOL_ROLE}' FROM item AS i JOIN {_NAMED}"
        )
        named = list(items)
        rows = self._rows(sql, [characters, *_named(named)])
        starts = {item: TextStart(plain(text), size, is_tool) for item, text, size, is_tool in rows}
        # a posting may name an item that does not exist
        return {item: starts.get(item, _NO_TEXT) for item in named}

    def items(self, ids: Iterable[int]) -> dict[int, StoredEntry]:
        return {
            row[0]: entry_of(row)
            for row in self._rows(f"{select_items()} JOIN {_NAMED}", _named(ids))
        }

    def conversations(self, ids: Iterable[int]) -> dict[int, Conversation]:
        rows = self._rows(f"{CONVERSATIONS} JOIN {_NAMED_CONVERSATIONS}", _named(ids))
        return {row[0]: conversation_of(row) for row in rows}

    def _rows(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        return self._connection.cursor(binary=True).execute(sql, values).fetchall()


_NAMED = (
    "unnest(%s::bigint[], %s::bigint[]) AS named (session, number) "
    "ON (i.session, i.number) = (named.session, named.number)"
)
_NAMED_CONVERSATIONS = (
    "unnest(%s::bigint[], %s::bigint[]) AS named (session, number) "
    "ON (c.session, c.first_number) = (named.session, named.number)"
)


def _named(items: Iterable[int]) -> list[Any]:
    ids = list(items)
    return [[id >> ITEM_BITS for id in ids], [id & NUMBERS for id in ids]]


def _table(connection: TeamConnection) -> ConversationTable:
    """Return the table of all conversations that the member sees, in one value.

    Row by row takes four times as long."""
    sql = (
        "SELECT string_agg(int8send(session) || int8send(first_number) || int8send(last_number) || "
        f"int8send(coalesce({time_in('last_at')}, 0)) || "
        f"int8send(coalesce({size_in('text_bytes')}, 0)), '' "
        f"ORDER BY session, first_number) FROM conversation AS c WHERE {IS_SOUND}"
    )
    packed = (connection.cursor(binary=True).execute(sql).fetchone() or (None,))[0] or b""
    values = array("q", packed)
    if sys.byteorder == "little":
        values.byteswap()
    sessions, firsts, lasts, ends, sizes = (values[column::5].tolist() for column in range(5))
    return ConversationTable(
        [session << ITEM_BITS | first for session, first in zip(sessions, firsts)],
        [last - first + 1 for first, last in zip(firsts, lasts)],
        ends,
        length_norms(sizes),
    )


PostingsOf = Callable[[str, bool, list[int] | None], list[int]]


def items_of(expression: Expression, terms: Terms, postings: PostingsOf) -> list[int]:
    """Return the items that match an expression, in order.

    `postings` returns the items that have a term, or with True any term that begins with it; if
    items are given, at least those among them."""

    def having(words: Words, among: list[int] | None = None) -> list[int]:
        items, each = among, [terms.of_word(word) for word in words.each]
        if len(each) > 1:  # the rarest first: that is cheap to join
            each.sort(key=lambda term: len(postings(term, False, None)))
        for term in each:
            postings_of_term = postings(term, words.is_prefix, items)
            items = postings_of_term if items is None else both(items, postings_of_term)
        return items or []

    items = reduce(either, map(having, expression.parts)) if expression.parts else None
    for words in expression.required:
        items = having(words, items)
    for words in expression.unwanted:
        items = without(items or [], having(words, items))
    return items or []
