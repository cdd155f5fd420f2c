"""The tool uses of each conversation, from which patterns are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...system.sqlite import explained
from ..values import Conversation, Filter, StoredEntry
from .engine import SqliteStore
from .exclusions import LISTED, item_shown
from .rows import conversation_columns, conversation_of, where

_STEPS = """
    SELECT id, 'tool', argument, timestamp, '', byte_offset, message, name, kind,
        coalesce(outcome, ''), coalesce(error, ''), result_size, result_lines
    FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2 {shown}
    UNION ALL SELECT id, 'user', '', timestamp, '', byte_offset, message, '', '', '', '', NULL, NULL
    FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2 AND role = 'user' {shown} ORDER BY 1
"""
_HAS_ERROR = (
    " AND EXISTS (SELECT 1 FROM memory_tool_uses AS t "
    "WHERE t.id BETWEEN c.first_item AND c.last_item AND t.outcome = 'error')"
)


class ConversationSteps(NamedTuple):
    """A conversation and its steps in file order: its tool uses and, without text, its user entries. Items that a fork
    copied (they count in the original) and items that rules exclude are omitted."""

    conversation: Conversation
    steps: list[StoredEntry]


def conversation_steps(store: SqliteStore, wanted: Filter, *, with_errors: bool = False) -> Iterator[ConversationSteps]:
    """Yield the conversations that fit, the latest first, at most `wanted.limit`; `with_errors`: only those in which a
    tool use failed. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = where(wanted)
    condition += _HAS_ERROR if with_errors else ""
    condition += f" AND {LISTED} AND f.id NOT IN (SELECT file_id FROM memory_excluded_files)" if excluding else ""
    steps_sql = _STEPS.format(shown=f"AND {item_shown('id')}" if excluding else "")
    sql = (
        f"SELECT c.first_item, c.last_item, {conversation_columns(excluding)} FROM memory_conversations AS c "
        f"JOIN memory_file_states AS f ON f.id = c.file_id WHERE {condition} "
        "ORDER BY c.last_message_at DESC, c.id DESC LIMIT ?"
    )
    with explained(store.path):
        for first, last, *row in store.connection.execute(sql, (*values, wanted.limit)).fetchall():
            steps = [StoredEntry._make(step) for step in store.connection.execute(steps_sql, (first, last))]
            yield ConversationSteps(conversation_of(row), steps)
