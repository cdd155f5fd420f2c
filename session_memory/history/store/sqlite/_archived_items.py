"""Recognises the messages of an archive that the store has from a transcript, and stores each once.

A session is archived under its id, but its transcript may be renamed before it is ingested, and a
damaged store may have lost some of its messages. An archive has the ids of only its first and last
entry, so messages are recognised by their role, second and first words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ....common.system.sqlite import fetch
from ..values import ITEM_BITS, TOOL_ROLE, items_of_file
from .engine import SqliteStore
from .rows import ids_of

_MOST_FILES = 50  # that have the same messages: forks of forks
_COMPARED_CHARACTERS = 200  # of a message: an archive may be set to cut it
_CUT = re.compile(r"\W*\n\n\[[\d,]+ more characters\]$")
_OWN = """
    SELECT id AS shown, id, role, content, timestamp, message, '' AS name FROM memory_transcript_entries
    WHERE id BETWEEN ?1 AND ?2
    UNION ALL SELECT id, id, 'tool', argument, timestamp, message, name FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2
"""
_COPIED = """
    UNION ALL SELECT s.id, e.id, e.role, e.content, e.timestamp, e.message, ''
    FROM memory_shared_items AS s JOIN memory_transcript_entries AS e ON e.id = s.original WHERE s.id BETWEEN ?1 AND ?2
    UNION ALL SELECT s.id, t.id, 'tool', t.argument, t.timestamp, t.message, t.name
    FROM memory_shared_items AS s JOIN memory_tool_uses AS t ON t.id = s.original WHERE s.id BETWEEN ?1 AND ?2
    ORDER BY 1
"""


class KnownItem(NamedTuple):
    """An item of a message.

    It has the key (None if lost), the text, and the time in milliseconds (None if unknown)."""

    key: int | None
    text: str
    at: int | None


class KnownMessages:
    """The messages of some files, each recognised once."""

    def __init__(self, messages: Iterable[tuple[str, list[KnownItem]]]) -> None:
        self._messages: dict[tuple[str, int], list[list[KnownItem]]] = {}
        for role, items in messages:
            self._messages.setdefault((role, _second(items[0].at)), []).append(items)

    def take(self, role: str, text: str, at: int | None) -> list[KnownItem] | None:
        """Return the items of the message that was archived with this text, or None.

        `at` is the message's time in milliseconds, None for any time. Each message is returned
        once."""
        keys = [key for key in self._messages if at is None and key[0] == role]
        keys = keys or [(role, _second(at))]
        archived = _compared([_CUT.sub("", text)])
        for there in [self._messages.get(key, []) for key in keys]:
            for items in there:
                if _is_same(_compared([item.text for item in items]), archived):
                    there.remove(items)
                    return items
        return None


def known_messages(
    store: SqliteStore, home: str, session_id: str, keys: Sequence[int]
) -> KnownMessages | None:
    """Return the messages of a session's transcripts, and of transcripts with one of these keys.

    Return None if there are none. Raises DatabaseError."""
    sql = f"""
        SELECT id FROM memory_file_states WHERE home = ?1 AND session_id = ?2 AND source != 'archive'
        UNION SELECT k.id >> {ITEM_BITS} FROM memory_item_keys AS k WHERE k.key IN carray(?3)
        UNION SELECT s.id >> {ITEM_BITS} FROM memory_item_keys AS k JOIN memory_shared_items AS s ON s.original = k.id
            WHERE k.key IN carray(?3)
        LIMIT {_MOST_FILES}
    """
    with store.explained():
        files = [
            file_id for (file_id,) in fetch(store.connection, sql, (home, session_id, ids_of(keys)))
        ]
        return KnownMessages(_messages(store, files)) if files else None


def known_keys(store: SqliteStore, keys: Iterable[int]) -> set[int]:
    """Return which of these keys an item in the store has. Raises DatabaseError."""
    return {
        key
        for (key,) in store.rows(
            "SELECT key FROM memory_item_keys WHERE key IN carray(?)", (ids_of(keys),)
        )
    }


def _messages(store: SqliteStore, files: Iterable[int]) -> Iterator[tuple[str, list[KnownItem]]]:
    rows = [
        row
        for file_id in files
        for row in fetch(store.connection, _OWN + _COPIED, items_of_file(file_id))
    ]
    items = {row[1]: row for row in rows}.values()  # an item in several of the files counts once
    sql = "SELECT id, key FROM memory_item_keys WHERE id IN carray(?)"
    keys = dict(fetch(store.connection, sql, (ids_of(row[1] for row in items),)))
    last: tuple[int, str, int] | None = None
    message: list[KnownItem] = []
    for _, item, role, text, at, number, name in items:
        known = KnownItem(
            keys.get(item), f"{name} {text}".strip() if role == TOOL_ROLE else text, at
        )
        if role == TOOL_ROLE:
            yield role, [known]
        elif message and last == (item >> ITEM_BITS, role, number):
            message.append(known)
        else:
            if message and last:
                yield last[1], message
            message, last = [known], (item >> ITEM_BITS, role, number)
    if message and last:
        yield last[1], message


def _second(at: int | None) -> int:
    return -1 if at is None else at // 1000


def _compared(texts: list[str]) -> str:
    return "".join("".join(texts)[: 4 * _COMPARED_CHARACTERS].split())[:_COMPARED_CHARACTERS]


def _is_same(text: str, archived: str) -> bool:
    size = max(1, min(len(text), len(archived)))
    return text[:size] == archived[:size]
