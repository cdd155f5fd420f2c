"""The tool uses of each conversation, from which patterns are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...system.sqlite import explained
from ..values import Conversation, Filter, StoredEntry
from .engine import SqliteStore
from .exclusions import HIDDEN_MESSAGES, item_shown, unless_private
from .rows import CONVERSATIONS, conversation_columns, conversation_of, ids_of, listed

_STEPS = """
    SELECT id, 'tool', argument, timestamp, coalesce(cwd, ''), byte_offset, message, name, kind,
        coalesce(outcome, ''), coalesce(error, ''), result_size, result_lines
    FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2 {shown}
    UNION ALL SELECT id, 'user', '', timestamp, '', byte_offset, message, '', '', '', '', NULL, NULL
    FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2 AND role = 'user' {shown} ORDER BY 1
"""
_HAS_ITEM = " AND EXISTS (SELECT 1 FROM carray(?) AS item WHERE item.value BETWEEN c.first_item AND c.last_item)"


class ConversationSteps(NamedTuple):
    """A conversation and its steps in file order: its tool uses and, without text, its user entries. Items that a fork
    copied (they count in the original) and items that rules exclude are omitted."""

    conversation: Conversation
    steps: list[StoredEntry]


def conversation_steps(
    store: SqliteStore, wanted: Filter, *, failing: Callable[[str], object] | None = None
) -> Iterator[ConversationSteps]:
    """Yield the conversations that fit, the latest first, at most `wanted.limit`; `failing`: only those in which a tool
    use failed with an error of which it returns something true. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(wanted, excluding)
    if failing:
        with explained(store.path):
            errors = store.connection.execute("SELECT id, error FROM memory_tool_uses WHERE outcome = 'error'")
            condition += _HAS_ITEM
            values.append(ids_of([id for id, error in errors if failing(error or "")]))
    condition += " AND f.id NOT IN (SELECT file_id FROM memory_excluded_files)" if excluding else ""
    steps_sql = _STEPS.format(shown=f"AND {item_shown('id')}" if excluding else "")
    sql = (
        f"SELECT c.first_item, c.last_item, {conversation_columns(excluding)} FROM {CONVERSATIONS} WHERE {condition} "
        "ORDER BY c.last_message_at DESC, c.id DESC LIMIT ?"
    )
    with explained(store.path):
        for first, last, *row in store.connection.execute(sql, (*values, wanted.limit)).fetchall():
            steps = [StoredEntry._make(step) for step in store.connection.execute(steps_sql, (first, last))]
            yield ConversationSteps(conversation_of(row), steps)


class WorkHour(NamedTuple):
    """An hour of a day (`2026-02-21`, local time): the conversations that began in it, and their messages."""

    day: str
    hour: int
    conversations: int
    messages: int


class WorkPlace(NamedTuple):
    """A directory in which sessions of a runtime were started, and the end of the last in milliseconds (or None)."""

    directory: str
    runtime: str
    sessions: int
    last_at: int | None


def work_hours(store: SqliteStore, wanted: Filter) -> list[WorkHour]:
    """Return the hours in which conversations that fit began, the earliest first. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(wanted, excluding)
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


def work_places(store: SqliteStore, homes: tuple[str, ...] | None = None) -> list[WorkPlace]:
    """Return the directories of these groups that have conversations, each with its runtimes, the latest first; ''
    stands for an unknown or private one. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = listed(Filter(homes=homes), excluding)
    directory = unless_private("f.cwd") if excluding else "f.cwd"
    sql = f"""
        SELECT directory, source, count(*), max(last_at) FROM (
            SELECT DISTINCT {directory} AS directory, f.source, f.id, f.last_entry_timestamp AS last_at
            FROM memory_file_states AS f JOIN memory_conversations AS c ON c.file_id = f.id WHERE {condition}
        ) GROUP BY 1, 2 ORDER BY 4 DESC, 1
    """
    return [WorkPlace._make(row) for row in store.rows(sql, values)]
