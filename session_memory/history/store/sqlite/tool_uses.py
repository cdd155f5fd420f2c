"""Listings of the whole store: tool uses, times and places of work, and shareable transcripts.

Patterns are found in the tool uses of each conversation. A team may share the transcripts, without
what rules exclude.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from ....common.system.sqlite import explained
from ..values import FOREIGN_ROOT, ITEM_BITS, NUMBERS, Conversation, Filter, StoredEntry, StoredSpan
from .engine import SqliteStore
from .exclusions import GIVEN_TITLE, HIDDEN_MESSAGES, SAID, item_shown, title_by, unless_private
from .rows import CONVERSATIONS, conversation_columns, conversation_of, ids_of, listed

_STEPS = """
    SELECT id, 'tool', argument, timestamp, coalesce(cwd, ''), byte_offset, message, name, kind,
        coalesce(outcome, ''), coalesce(error, ''), result_size, result_lines
    FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2 {shown}
    UNION ALL SELECT id, 'user', substr(content, 1, {longest}), timestamp, '', byte_offset, message, '', '', '', '',
        NULL, NULL
    FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2 AND role = 'user' {shown} ORDER BY 1
"""
_USER_CHARACTERS = 1001  # of a user entry: patterns compare instructions in shorter ones
_HAS_ITEM = (
    " AND EXISTS (SELECT 1 FROM carray(?) AS item WHERE item.value BETWEEN c.first_item "
    "AND c.last_item)"
)


class ConversationSteps(NamedTuple):
    """A conversation and its steps in file order: its tool uses, and how its user entries begin.

    Excluded items are left out, and so are items that a fork copied, because they count in the
    original."""

    conversation: Conversation
    steps: list[StoredEntry]


def conversation_steps(
    store: SqliteStore, wanted: Filter, *, failing: Callable[[str], object] | None = None
) -> Iterator[ConversationSteps]:
    """Yield the conversations that fit, the latest first, at most `wanted.limit`.

    With `failing`, only conversations with a failed tool use are yielded for whose error it returns
    a true value. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(wanted, store.visible, excluding)
    if failing:
        with explained(store.path):
            errors = store.connection.execute(
                "SELECT id, error FROM memory_tool_uses WHERE outcome = 'error'"
            )
            condition += _HAS_ITEM
            values.append(ids_of([id for id, error in errors if failing(error or "")]))
    condition += " AND f.id NOT IN (SELECT file_id FROM memory_excluded_files)" if excluding else ""
    shown = f"AND {item_shown('id')}" if excluding else ""
    steps_sql = _STEPS.format(shown=shown, longest=_USER_CHARACTERS)
    sql = (
        f"SELECT c.first_item, c.last_item, {conversation_columns(excluding)} FROM "
        f"{CONVERSATIONS} WHERE {condition} "
        "ORDER BY c.last_message_at DESC, c.id DESC LIMIT ?"
    )
    with explained(store.path):
        for first, last, *row in store.connection.execute(sql, (*values, wanted.limit)).fetchall():
            steps = [
                StoredEntry._make(step)
                for step in store.connection.execute(steps_sql, (first, last))
            ]
            yield ConversationSteps(conversation_of(row), steps)


class WorkHour(NamedTuple):
    """An hour of a day (`2026-02-21`, local time), its new conversations, and their messages."""

    day: str
    hour: int
    conversations: int
    messages: int


class WorkPlace(NamedTuple):
    """A directory in which sessions of a runtime were started, and the last one's end.

    The end is in milliseconds, or None."""

    directory: str
    runtime: str
    sessions: int
    last_at: int | None


def work_hours(store: SqliteStore, wanted: Filter) -> list[WorkHour]:
    """Return the hours in which fitting conversations began, the earliest first.

    Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(wanted, store.visible, excluding)
    messages = f"max(0, c.entry_count - {HIDDEN_MESSAGES})" if excluding else "c.entry_count"
    sql = f"""
        SELECT strftime('%Y-%m-%d', at, 'unixepoch', 'localtime') AS day,
            CAST(strftime('%H', at, 'unixepoch', 'localtime') AS INTEGER) AS hour, sum(conversations), sum(messages)
        FROM (
            SELECT c.first_message_at / 900000 * 900 AS at, count(*) AS conversations, sum({messages}) AS messages
            FROM {CONVERSATIONS}
            WHERE {condition} AND c.first_message_at IS NOT NULL GROUP BY 1
        ) GROUP BY 1, 2 ORDER BY 1, 2
    """
    return [WorkHour._make(row) for row in store.rows(sql, values)]


def work_places(store: SqliteStore) -> list[WorkPlace]:
    """Return the directories that have conversations, each with its runtimes, the latest first.

    An unknown or private directory is ''. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(Filter(), store.visible, excluding)
    directory = unless_private("f.cwd") if excluding else "f.cwd"
    sql = f"""
        SELECT directory, source, count(*), max(last_at) FROM (
            SELECT DISTINCT {directory} AS directory, f.source, f.id, f.last_entry_timestamp AS last_at
            FROM memory_file_states AS f JOIN memory_conversations AS c ON c.file_id = f.id WHERE {condition}
        ) GROUP BY 1, 2 ORDER BY 4 DESC, 1
    """
    return [WorkPlace._make(row) for row in store.rows(sql, values)]


class StoredFile(NamedTuple):
    """A transcript in the store, as in FileState.

    `given_title` is a title that a person gave it, `known_title` the title by which rules may name
    it. The next item gets `next_number`. `ranges` are the first and last numbers of existing items,
    and `hidden` the numbers that rules exclude, or all if `is_excluded`."""

    id: int
    home: str
    file_path: str
    session_id: str
    runtime: str
    title: str
    given_title: str
    known_title: str
    cwd: str
    first_at: int | None
    last_at: int | None
    next_number: int
    ranges: tuple[tuple[int, int], ...]
    hidden: frozenset[int]
    is_excluded: bool

    @property
    def item_count(self) -> int:
        return 0 if self.is_excluded else self.count_without(self.hidden)

    def count_without(self, numbers: Collection[int]) -> int:
        return sum([last - first + 1 for first, last in self.ranges]) - len(numbers)


def store_id(store: SqliteStore) -> int:
    """Return the number that distinguishes this store from all others. Raises DatabaseError."""
    [(id,)] = store.rows("SELECT id FROM memory_store")
    return int(id)


def stored_files(store: SqliteStore) -> list[StoredFile]:
    """Return the transcripts of this machine, in the order of their first ingestion.

    Raises DatabaseError."""
    sql = f"""
        SELECT id, home, file_path, session_id, source, title, iif(title_rank >= {GIVEN_TITLE}, title, ''), {SAID},
            cwd, first_entry_timestamp, last_entry_timestamp, next_ordinal
        FROM memory_file_states AS f WHERE root NOT LIKE '%{FOREIGN_ROOT}' ORDER BY id
    """
    spans = "SELECT first_item, last_item FROM memory_conversations ORDER BY first_item"
    excluded = store.excluded_files()
    hidden: defaultdict[int, set[int]] = defaultdict(set)
    ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    if store.is_excluding():
        for (item,) in store.rows("SELECT item FROM memory_excluded_items"):
            hidden[item >> ITEM_BITS].add(item & NUMBERS)
    for first, last in store.rows(spans):
        of_file = ranges[first >> ITEM_BITS]
        start = (
            of_file.pop()[0]
            if of_file and of_file[-1][1] + 1 == first & NUMBERS
            else first & NUMBERS
        )
        of_file.append((start, last & NUMBERS))
    files = []
    for *of, title, given, said, cwd, first, last, number in store.rows(sql):
        id = of[0]
        facts = tuple(ranges[id]), frozenset(hidden[id]), id in excluded
        files.append(
            StoredFile._make(
                (*of, title, given, title or title_by(said), cwd, first, last, number, *facts)
            )
        )
    return files


def common_items(store: SqliteStore) -> list[tuple[int, int]]:
    """Return the ids of a fork's copied items, each with its original's. Raises DatabaseError."""
    return store.rows("SELECT id, original FROM memory_shared_items")


def spans_from(store: SqliteStore, file_id: int, first: int) -> list[StoredSpan]:
    """Return the conversations of a file with items from number `first` on, in order.

    Raises DatabaseError."""
    sql = (
        "SELECT first_item, last_item, first_message_at, last_message_at, entry_count, text_bytes "
        "FROM memory_conversations WHERE file_id = ? AND last_item >= ? ORDER BY first_item"
    )
    rows = store.rows(sql, (file_id, (file_id << ITEM_BITS) + first))
    return [StoredSpan(begin & NUMBERS, end & NUMBERS, *counts) for begin, end, *counts in rows]
