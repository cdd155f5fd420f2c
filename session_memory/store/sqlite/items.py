"""Items by their ids: whole, or the beginnings of their texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from ..values import TOOL_ROLE, StoredEntry
from .schema import ITEM_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection

ENTRIES = f"""
    SELECT e.id, e.role, e.content, e.timestamp, coalesce(e.cwd, f.cwd), e.byte_offset, e.message,
        '', '', '', '', NULL, NULL
    FROM memory_transcript_entries AS e JOIN memory_file_states AS f ON f.id = e.id >> {ITEM_BITS}
"""
TOOL_USES = f"""
    SELECT t.id, '{TOOL_ROLE}', t.argument, t.timestamp, f.cwd, t.byte_offset, t.message, t.name, t.kind,
        coalesce(t.outcome, ''), coalesce(t.error, ''), t.result_size, t.result_lines
    FROM memory_tool_uses AS t JOIN memory_file_states AS f ON f.id = t.id >> {ITEM_BITS}
"""


class TextStart(NamedTuple):
    """The beginning of an item's text; `size` is that of all of it, in bytes."""

    text: str
    size: int
    is_tool: bool


def items_of(connection: Connection, items: Iterable[int]) -> dict[int, StoredEntry]:
    """The entries and tool uses of these ids."""
    sql = f"{ENTRIES} WHERE e.id IN carray(?1) UNION ALL {TOOL_USES} WHERE t.id IN carray(?1)"
    return {row[0]: StoredEntry._make(row) for row in connection.execute(sql, (ids_of(items),))}


def text_starts(connection: Connection, items: Iterable[int], characters: int) -> dict[int, TextStart]:
    """The beginnings of their texts, of at most so many characters."""
    sql = """
        SELECT id, substr(content, 1, ?2), octet_length(content), 0
        FROM memory_transcript_entries WHERE id IN carray(?1)
        UNION ALL SELECT id, substr(argument, 1, ?2), octet_length(argument), 1
        FROM memory_tool_uses WHERE id IN carray(?1)
    """
    rows = connection.execute(sql, (ids_of(items), characters))
    return {item: TextStart(text, size, bool(is_tool)) for item, text, size, is_tool in rows}


def ids_of(items: Iterable[int]) -> Any:
    """Ids as `carray(?)` takes them."""
    import apsw

    return apsw.carray(array("q", [*items] or [0]))  # an empty array is refused; 0 is the id of nothing
