"""What listings and searches have in common: the SQL of a filter, and a row as a conversation."""

from __future__ import annotations

from ..values import Conversation, Filter
from .texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TITLE_CHARACTERS = 80
# A conversation is called by its session's title, else by what the user said first in it, which may be packed.
CONVERSATION_COLUMNS = f"""
    c.id, c.session_id, c.source_file, f.home, f.source, f.cwd, coalesce(nullif(f.title, ''), (
        SELECT iif(typeof(content) = 'text', substr(content, 1, {TITLE_CHARACTERS}), content)
        FROM memory_transcript_entries
        WHERE id BETWEEN c.first_item AND c.last_item AND role = 'user' ORDER BY id LIMIT 1
    ), ''), c.first_message_at, c.last_message_at, c.entry_count, c.status, c.reason
"""


def where(wanted: Filter) -> tuple[str, tuple[Any, ...]]:
    """The condition on `memory_conversations AS c` and `memory_file_states AS f`, and its values."""
    conditions = ["1"]
    values: list[Any] = []
    if wanted.homes is not None:
        conditions.append(f"f.home IN ({', '.join('?' * len(wanted.homes))})")
        values += wanted.homes
    if wanted.project:
        conditions.append("(instr(lower(f.cwd), ?) OR instr(lower(f.file_path), ?))")
        project = wanted.project.lower().rstrip("/")
        values += [project, project.replace("/", "-")]
    if wanted.session:
        conditions.append("substr(f.session_id, 1, length(?)) = ?")
        values += [wanted.session, wanted.session]
    if wanted.status:
        conditions.append("c.status = ?")
        values.append(wanted.status)
    if wanted.since is not None:
        conditions.append("c.last_message_at >= ?")
        values.append(wanted.since)
    if wanted.until is not None:
        conditions.append("c.first_message_at <= ?")
        values.append(wanted.until)
    return " AND ".join(conditions), tuple(values)


def conversation_of(row: tuple[Any, ...], texts: Texts) -> Conversation:
    """A row of CONVERSATION_COLUMNS."""
    conversation = Conversation._make(row)
    title: str | bytes = conversation.title
    if isinstance(title, bytes):
        return conversation._replace(title=texts.beginning(title, TITLE_CHARACTERS)[0])
    return conversation
