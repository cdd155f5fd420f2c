"""What the queries of the engine have in common: the condition of a filter, and rows as values."""

from __future__ import annotations

from ...text.format import one_line, shorten
from ...transcripts.titles import subject
from ..values import ITEM_BITS, Conversation, StoredEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..values import Filter

TITLE_CHARACTERS = 80
_SAID_CHARACTERS = 400  # of a first message, in which a plan may have its heading
NUMBERS = (1 << ITEM_BITS) - 1  # of an item's id, the bits that are its number

# The fields of values.Conversation, but for a title that is what the user said first, which comes behind them. A
# conversation is known by its first item.
CONVERSATIONS = f"""
    SELECT c.session << {ITEM_BITS} | c.first_number, s.session_id, s.file_path, s.home, s.runtime, s.cwd, s.title,
        c.first_at, c.last_at, c.message_count, '', '', s.owner || '@' || s.machine,
        CASE WHEN s.title = '' THEN (
            SELECT left(i.text, {_SAID_CHARACTERS}) FROM item AS i
            WHERE i.session = c.session AND i.number BETWEEN c.first_number AND c.last_number AND i.role = 'user'
            ORDER BY i.number LIMIT 1
        ) END
    FROM conversation AS c JOIN session AS s ON s.id = c.session
"""
# The fields of values.StoredEntry.
ITEMS = f"""
    SELECT i.session << {ITEM_BITS} | i.number, i.role, i.text, i.at, coalesce(i.cwd, s.cwd), i.byte_offset, i.message,
        coalesce(i.tool, ''), coalesce(i.kind, ''), coalesce(i.outcome, ''), coalesce(i.error, ''), i.result_size,
        i.result_lines
    FROM item AS i JOIN session AS s ON s.id = i.session
"""


def conversation_of(row: Sequence[Any]) -> Conversation:
    """The conversation in a row of CONVERSATIONS."""
    found = Conversation._make(row[:-1])
    said = row[-1]
    return found._replace(title=shorten(one_line(subject(said)), TITLE_CHARACTERS)) if said else found


def entry_of(row: Sequence[Any]) -> StoredEntry:
    """The entry or tool use in a row of ITEMS."""
    return StoredEntry._make(row)


def where(wanted: Filter) -> tuple[str, list[Any]]:
    """The condition on `conversation AS c` and `session AS s`, and its values. What is to be done with a conversation
    (`status`) is not known here."""
    condition, values = where_session(wanted)
    if wanted.status:
        condition += " AND false"
    if wanted.since is not None:
        condition += " AND c.last_at >= %s"
        values.append(wanted.since)
    if wanted.until is not None:
        condition += " AND c.first_at <= %s"
        values.append(wanted.until)
    return condition, values


def where_session(wanted: Filter) -> tuple[str, list[Any]]:
    """The part of the condition that is on `session AS s`, but for the times."""
    conditions = ["true"]
    values: list[Any] = []
    if wanted.homes is not None:
        conditions.append("s.home = ANY(%s)")
        values.append(list(wanted.homes))
    if wanted.project:
        conditions.append("(strpos(lower(s.cwd), %s) > 0 OR strpos(lower(s.file_path), %s) > 0)")
        project = wanted.project.lower().rstrip("/")
        values += [project, project.replace("/", "-")]
    if wanted.directories:
        is_in = "s.cwd = %s OR starts_with(s.cwd, %s)"
        conditions.append(f"({' OR '.join([is_in] * len(wanted.directories))})")
        values += [value for one in wanted.directories for value in (one, f"{one}/")]
    if wanted.session:
        conditions.append("starts_with(s.session_id, %s)")
        values.append(wanted.session)
    if wanted.runtime:
        conditions.append("s.runtime = %s")
        values.append(wanted.runtime)
    return " AND ".join(conditions), values
