"""The calls of sub-agents that write files or run git.

Each belongs to the session's call that started the sub-agent, and is excluded, redacted and
forgotten with that call. unread_lines.py reads them from the sub-agents' transcripts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ....common.system.sqlite import Connection, fetch
from ..values import ITEM_BITS, StoredEntry, joined
from .exclusions import item_shown
from .rows import is_visible
from .written_lines import TimedCall, WrittenLine

if TYPE_CHECKING:
    from .engine import SqliteStore

SUB_AGENT = "sub-agent"  # the role of these calls
_TABLE = "memory_sub_agent_calls"


class SubAgentCall(NamedTuple):
    """A sub-agent's call.

    `item` is its session's call that started the sub-agent, `call` a hash of its own id, and
    `timestamp` in milliseconds. The other fields are as for a tool use."""

    item: int
    call: int
    timestamp: int
    kind: str
    argument: str
    outcome: str | None
    cwd: str


def insert(connection: Connection, calls: Iterable[SubAgentCall]) -> None:
    """Insert calls within the caller's transaction; a known call gets its new outcome."""
    connection.executemany(f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", calls)


def remove(connection: Connection, first: int, last: int, new_ids: dict[int, int]) -> None:
    """Remove the calls of the items from `first` to `last`, except for items with new ids."""
    rows = _calls(connection, "WHERE item BETWEEN ? AND ?", (first, last))
    connection.execute(f"DELETE FROM {_TABLE} WHERE item BETWEEN ? AND ?", (first, last))
    insert(
        connection,
        [call._replace(item=new_ids[call.item]) for call in rows if call.item in new_ids],
    )


def of_conversation(store: SqliteStore, conversation_id: int) -> list[StoredEntry]:
    """Return the calls of a conversation's sub-agents, the earliest first, without excluded ones.

    The id of each is the id of its session's call. Raises DatabaseError."""
    with store.explained():
        shown = f"AND {item_shown('item')}" if store.is_excluding() else ""
        condition = f"WHERE item BETWEEN ? AND ? {shown} ORDER BY timestamp"
        calls = _calls(store.connection, condition, store.item_ids(conversation_id))
    return [
        StoredEntry(call.item, SUB_AGENT, call.argument, call.timestamp, call.cwd, 0)._replace(
            kind=call.kind, outcome=call.outcome or ""
        )
        for call in calls
    ]


def between(store: SqliteStore, since: int, until: int) -> list[TimedCall]:
    """Return the calls made between two times, without excluded ones. Raises DatabaseError."""
    shown = f"AND {item_shown('c.item')}" if store.is_excluding() else ""
    visible, values = joined(is_visible(store.visible))
    sql = f"""
        SELECT c.item, c.timestamp, c.argument, c.kind, f.id, f.session_id, c.cwd, coalesce(c.outcome, '')
        FROM {_TABLE} AS c JOIN memory_file_states AS f ON f.id = c.item >> {ITEM_BITS}
        WHERE c.timestamp BETWEEN ? AND ? {shown} AND {visible}
    """
    return [
        TimedCall(WrittenLine(0, *row[:6]), row[6], row[7])
        for row in store.rows(sql, (since, until, *values))
    ]


def redact(connection: Connection) -> bool:
    """Redact all calls by the current rules; return whether anything changed."""
    from ....common.text.sanitize import for_storage

    before = _calls(connection)
    after = [
        call._replace(argument=for_storage(call.argument), cwd=for_storage(call.cwd))
        for call in before
    ]
    changed = [new for old, new in zip(before, after) if old != new]
    insert(connection, changed)
    return bool(changed)


def _calls(
    connection: Connection, condition: str = "", values: tuple[int, ...] = ()
) -> list[SubAgentCall]:
    return [
        SubAgentCall._make(row)
        for row in fetch(connection, f"SELECT * FROM {_TABLE} {condition}", values)
    ]
