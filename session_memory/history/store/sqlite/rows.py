"""Shared parts of the engine's queries: the condition of a filter, and rows as values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from ....common.system.sqlite import Connection, fetch
from ....common.text.format import one_line, shorten
from ....sessions.transcripts.reader import title_of
from ..values import (
    ITEM_BITS,
    TOOL_ROLE,
    Conversation,
    Filter,
    StoredEntry,
    Visible,
    joined,
    project_patterns,
)
from .exclusions import HIDDEN_MESSAGES, LISTED, item_shown, title_shown, unless_private

CONVERSATIONS = "memory_conversations AS c JOIN memory_file_states AS f ON f.id = c.file_id"
TITLE_CHARACTERS = 80
SAID_CHARACTERS = 2000  # of a first message: it may begin with a plan or a pasted text
_TIMES = ("c.first_message_at", "c.last_message_at")
_SAID = "\x01"  # before a title that is the user's first words


def conversation_columns(excluding: bool) -> str:
    """Return the columns of values.Conversation, without excluded content.

    The title is the session's. Without one, it is the user's first words, which `conversation_of`
    turns into a title."""
    title, source_file, cwd, messages = "f.title", "c.source_file", "f.cwd", "c.entry_count"
    shown = ""
    if excluding:
        title, source_file, cwd = title_shown(), unless_private(source_file), unless_private(cwd)
        shown = f"AND {item_shown('id')}"
        messages = f"max(0, c.entry_count - {HIDDEN_MESSAGES})"
    return f"""
        c.id, c.session_id, {source_file}, f.home, f.source, {cwd}, coalesce(nullif({title}, ''), (
            SELECT char({ord(_SAID)}) || substr(content, 1, {SAID_CHARACTERS}) FROM memory_transcript_entries
            WHERE id BETWEEN c.first_item AND c.last_item AND role = 'user' {shown} ORDER BY id LIMIT 1
        ), ''), c.first_message_at, c.last_message_at, {messages}, c.status, c.reason, ''
    """


def conversation_of(row: Sequence[Any]) -> Conversation:
    """Return the conversation of a row; without a title, it gets one from its first words."""
    conversation = Conversation._make(row)
    return (
        conversation._replace(title=first_words(conversation.title[1:]))
        if conversation.title.startswith(_SAID)
        else conversation
    )


@lru_cache(maxsize=1000)
def first_words(said: str) -> str:
    """Return a title made of the user's first words.

    Cached, because listed sessions repeat them."""
    return shorten(one_line(title_of(said)), TITLE_CHARACTERS)


# The fields of values.StoredEntry.
ENTRIES = f"""
    SELECT e.id, e.role, e.content, e.timestamp, coalesce(e.cwd, f.cwd), e.byte_offset, e.message,
        '', '', '', '', NULL, NULL
    FROM memory_transcript_entries AS e JOIN memory_file_states AS f ON f.id = e.id >> {ITEM_BITS}
"""
TOOL_USES = f"""
    SELECT t.id, '{TOOL_ROLE}', t.argument, t.timestamp, coalesce(t.cwd, f.cwd), t.byte_offset, t.message, t.name,
        t.kind, coalesce(t.outcome, ''), coalesce(t.error, ''), t.result_size, t.result_lines
    FROM memory_tool_uses AS t JOIN memory_file_states AS f ON f.id = t.id >> {ITEM_BITS}
"""


def where(
    wanted: Filter, visible: Visible, times: tuple[str, str] = _TIMES
) -> tuple[str, list[Any]]:
    """Return the condition of a filter, and its values.

    It is about `memory_conversations AS c` and `memory_file_states AS f`. `times` are the columns
    that the limits of time apply to."""
    session = wanted.session
    patterns = project_patterns(
        wanted.project, lambda character: f"[{character}]" if character in "*?[" else character
    )
    return joined(
        is_visible(visible),
        (
            wanted.project,
            "(f.cwd GLOB ? OR f.cwd GLOB ? OR f.file_path GLOB ? OR f.file_path GLOB ?)",
            [f"*{pattern}*" for pattern in patterns],
        ),
        (wanted.directories, *_in_directories(wanted)),
        (session, "substr(f.session_id, 1, length(?)) = ?", (session, session)),
        (wanted.runtime, "f.source = ?", (wanted.runtime,)),
        (wanted.status, "c.status = ?", (wanted.status,)),
        (wanted.since is not None, f"{times[1]} >= ?", (wanted.since,)),
        (wanted.until is not None, f"{times[0]} <= ?", (wanted.until,)),
    )


def is_visible(visible: Visible) -> tuple[bool, str, Sequence[str]]:
    """Return the condition for visible `memory_file_states AS f`, in the form for `joined`."""
    values = visible or ()
    return visible is not None, f"f.home IN ({', '.join('?' * len(values))})", values


def _in_directories(wanted: Filter) -> tuple[str, list[str]]:
    """Return the condition that a session was started in the directories or continued there.

    It is about `memory_file_states AS f`. Sessions that continued there are found only in the
    folders that the runtime has for these directories."""

    def is_in(column: str) -> str:
        start = "rtrim(path, '/') || '/'"
        below = f"substr({column}, 1, length({start})) = {start}"
        return f"EXISTS (SELECT 1 FROM place WHERE {column} = path OR {below})"

    def some(values: Sequence[str], text: str) -> str:
        return ", ".join([text] * len(values))

    files = (
        f"WITH place(path) AS (VALUES {some(wanted.directories, '(?)')}) "
        f"SELECT o.id FROM memory_file_states AS o WHERE {is_in('o.cwd')}"
        f" OR (substr(o.file_path, 1, instr(o.file_path, '/') - 1) IN ({some(wanted.folders, '?')})"
        " AND EXISTS (SELECT 1 FROM memory_transcript_entries AS e"
        f" WHERE e.id BETWEEN o.id << {ITEM_BITS} AND ((o.id + 1) << {ITEM_BITS}) - 1 AND "
        f"{is_in('e.cwd')}))"
    )
    return f"f.id IN ({files})", [*wanted.directories, *wanted.folders]


def listed(wanted: Filter, visible: Visible, excluding: bool) -> tuple[str, list[Any]]:
    """Return the condition of `where`; if `excluding`, without excluded conversations."""
    condition, values = where(wanted, visible)
    return (f"{condition} AND {LISTED}" if excluding else condition), values


def items_of(connection: Connection, items: Iterable[int]) -> dict[int, StoredEntry]:
    """Return entries and tool uses by their numbers."""
    sql = f"{ENTRIES} WHERE e.id IN carray(?1) UNION ALL {TOOL_USES} WHERE t.id IN carray(?1)"
    return {row[0]: StoredEntry._make(row) for row in fetch(connection, sql, (ids_of(items),))}


def items_between(
    connection: Connection, first: int, last: int, *, excluding: bool = False
) -> list[StoredEntry]:
    """Return the items of one file with ids from `first` to `last`, in file order.

    Items shared with another file are included. If `excluding`, excluded items are left out."""
    entry, use, copy, original = (
        f"AND {item_shown(item)}" if excluding else ""
        for item in ("e.id", "t.id", "s.id", "s.original")
    )
    query = (
        f"{ENTRIES} WHERE e.id BETWEEN ?1 AND ?2 {entry} "
        f"UNION ALL {TOOL_USES} WHERE t.id BETWEEN ?1 AND ?2 {use} ORDER BY 1"
    )
    items = [StoredEntry._make(row) for row in fetch(connection, query, (first, last))]
    sql = (
        f"SELECT id, original FROM memory_shared_items AS s WHERE id BETWEEN ? AND ? {copy} "
        f"{original}"
    )
    shared = fetch(connection, sql, (first, last))
    if shared:
        originals = items_of(connection, [original for _, original in shared])
        items += [
            originals[original]._replace(id=item)
            for item, original in shared
            if original in originals
        ]
        items.sort(key=lambda item: item.id)
    return items


def ids_of(items: Iterable[int]) -> Any:
    """Return ids as a value for `carray(?)`."""
    import apsw

    # an empty array is refused; 0 is the id of nothing
    return apsw.carray(array("q", [*items] or [0]))
