"""The marks of messages in conversations that are being forgotten, and their copies elsewhere.

Other files, such as forks, may have copies of these messages.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ....common.system.sqlite import Connection, fetch
from ....sessions.transcripts.marks import content_mark, key_mark, title_mark, tool_key
from ..values import ITEM_BITS
from ._conversations import recut
from ._writer import drop_made_title, remove_items
from .rows import ids_of

_SPANS = "SELECT first_item, last_item FROM memory_conversations WHERE id IN carray(?)"
_OWN = """
    SELECT id FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2
    UNION SELECT id FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2
    UNION SELECT original FROM memory_shared_items WHERE id BETWEEN ?1 AND ?2
"""
_TITLES = """
    SELECT DISTINCT title FROM memory_file_states
    WHERE title != '' AND id IN (SELECT file_id FROM memory_conversations WHERE id IN carray(?1))
"""
_TITLES_OF_WHOLE = f"""
    {_TITLES} AND id NOT IN (SELECT file_id FROM memory_conversations WHERE id NOT IN carray(?1))
"""
_TIMES = """
    SELECT s.id, e.timestamp FROM memory_shared_items AS s JOIN memory_transcript_entries AS e ON e.id = s.original
    WHERE s.id IN carray(?1)
    UNION SELECT s.id, t.timestamp FROM memory_shared_items AS s JOIN memory_tool_uses AS t ON t.id = s.original
    WHERE s.id IN carray(?1)
    UNION SELECT id, timestamp FROM memory_transcript_entries WHERE id IN carray(?2)
    UNION SELECT id, timestamp FROM memory_tool_uses WHERE id IN carray(?2)
"""
_DROP_TITLE = f"""
    UPDATE memory_file_states SET title = '', title_rank = -1
    WHERE id = ?1 AND title IN ({_TITLES.replace("?1", "?2")})
"""


class Copies(NamedTuple):
    """The items of conversations, wherever the store has them.

    `shared` are rows of files with copies, `originals` the items in other files that were copied.
    """

    shared: list[int]
    originals: list[int]

    @property
    def items(self) -> list[int]:
        return sorted([*self.shared, *self.originals])


def marks_of_conversations(connection: Connection, ids: Sequence[int]) -> Iterator[str]:
    """Yield the marks of all messages of conversations (see transcripts.marks).

    The marks of titles follow, for sessions without any other conversation."""
    items = _items(connection, _spans(connection, ids))
    sql = "SELECT key FROM memory_item_keys WHERE id IN carray(?)"
    for (key,) in fetch(connection, sql, (ids_of(items),)):
        yield key_mark(key)
        yield key_mark(tool_key(key, -1))  # of the entry if this is its first tool use
    sql = (
        "SELECT role, timestamp, content FROM memory_transcript_entries WHERE timestamp IS NOT "
        "NULL AND id IN carray(?)"
    )
    for role, when, text in fetch(connection, sql, (ids_of(items),)):
        yield content_mark(role, when, text)
    for (title,) in fetch(connection, _TITLES_OF_WHOLE, (ids_of(list(ids)),)):
        yield title_mark(title)


def copies_of(connection: Connection, ids: Sequence[int]) -> Copies:
    """Return the items of other files that are copies of messages in conversations."""
    spans = _spans(connection, ids)
    items = _items(connection, spans)
    sql = "SELECT id FROM memory_shared_items WHERE original IN carray(?)"
    shared = [item for (item,) in fetch(connection, sql, (ids_of(items),))]
    starts = sorted(spans)

    def is_outside(item: int) -> bool:
        at = bisect_right(starts, item, key=lambda span: span[0]) - 1
        return at < 0 or item > starts[at][1]

    return Copies(list(filter(is_outside, shared)), list(filter(is_outside, items)))


def conversations_with(connection: Connection, copies: Copies) -> dict[int, int]:
    """Return the ids of conversations with copies, each with the time of its latest copy.

    The time is in milliseconds."""
    copied_at: dict[int, int] = {}
    for item, when in fetch(connection, _TIMES, (ids_of(copies.shared), ids_of(copies.originals))):
        sql = (
            "SELECT id FROM memory_conversations WHERE file_id = ? AND ? BETWEEN first_item "
            "AND last_item"
        )
        for (id,) in fetch(connection, sql, (item >> ITEM_BITS, item)):
            copied_at[id] = max(copied_at.get(id, 0), when or 0)
    return copied_at


def remove_copies(connection: Connection, ids: Sequence[int], copies: Copies, gap: int) -> None:
    """Remove other files' copies of the conversations `ids`, and titles that may quote them.

    These files are cut into conversations again. `gap` is in milliseconds."""
    connection.execute(
        "DELETE FROM memory_shared_items WHERE id IN carray(?)", (ids_of(copies.shared),)
    )
    for first, last in _runs(copies.originals):
        remove_items(connection, first, last)
    removed: dict[int, list[int]] = {}
    for item in copies.items:
        removed.setdefault(item >> ITEM_BITS, []).append(item)
    for file_id, items in removed.items():
        drop_made_title(connection, file_id)
        connection.execute(_DROP_TITLE, (file_id, ids_of(ids)))
        recut(connection, file_id, gap, items)


def _spans(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int]]:
    return [(first, last) for first, last in fetch(connection, _SPANS, (ids_of(ids),))]


def _items(connection: Connection, spans: Iterable[tuple[int, int]]) -> list[int]:
    return list(
        dict.fromkeys([item for span in spans for (item,) in fetch(connection, _OWN, span)])
    )


def _runs(items: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of each run of consecutive ids."""
    first = last = None
    for item in sorted(items):
        if first is None or last is None or item != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = item
        last = item
    if first is not None and last is not None:
        yield first, last
