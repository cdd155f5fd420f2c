"""Finds the conversations with a running turn at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....sessions.transcripts.turns import is_running

if TYPE_CHECKING:
    from ..values import Conversation
    from .engine import SqliteStore


def running_at(
    store: SqliteStore, conversations: Sequence[Conversation], first: int, last: int
) -> list[Conversation]:
    """Return the conversations with a running turn between the times `first` and `last`.

    The times are in milliseconds. The turn was requested before `last` and not over at `first`.
    Raises DatabaseError."""
    sql = """
        SELECT timestamp, role, tool FROM (
            SELECT id, timestamp, role, 0 AS tool FROM memory_transcript_entries
            WHERE id BETWEEN ?1 AND ?2 AND timestamp IS NOT NULL
            UNION ALL SELECT id, timestamp, 'assistant', 1 FROM memory_tool_uses
            WHERE id BETWEEN ?1 AND ?2 AND timestamp IS NOT NULL
        ) ORDER BY id
    """
    running = []
    for conversation in conversations:
        spans = "SELECT first_item, last_item FROM memory_conversations WHERE id = ?"
        for span in store.rows(spans, (conversation.id,)):
            if _has_turn(store.rows(sql, span), first, last):
                running.append(conversation)
    return running


def _has_turn(items: Sequence[tuple[int, str, int]], first: int, last: int) -> bool:
    """Check if a turn among these items was running between the two times.

    An item is (time, role, whether it is a tool use). A turn without an answer continues for a
    while, at most until the next request."""
    for place, (began, role, _) in enumerate(items):
        if role != "user" or began > last:
            continue
        following = next(
            (at for at in range(place + 1, len(items)) if items[at][1] == "user"), len(items)
        )
        end, last_role, is_call = items[following - 1]
        is_answered = last_role == "assistant" and not is_call
        if end >= first:
            return True
        is_over = following < len(items) and items[following][0] < first
        if (
            not is_answered
            and not is_over
            and is_running(last_role, bool(is_call), (first - end) / 1000)
        ):
            return True
    return False
