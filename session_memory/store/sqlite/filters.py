"""What listings and searches have in common: the SQL of a filter, and the columns of a conversation."""

from __future__ import annotations

from ..values import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TITLE_CHARACTERS = 80
# The fields of values.Conversation. Its title is its session's, else how what the user said first in it begins.
CONVERSATION_COLUMNS = f"""
    c.id, c.session_id, c.source_file, f.home, f.source, f.cwd, coalesce(nullif(f.title, ''), (
        SELECT substr(content, 1, {TITLE_CHARACTERS}) FROM memory_transcript_entries
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
