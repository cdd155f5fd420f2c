"""What a line means in the file in which upkeep keeps what a session of a team did lately: one JSON object an entry.

`{"role": "user", "text": "...", "at": 1780000000.5, "id": "...", "tools": [["Edit", "edit", "src/a.py"]]}`, or, as the
first line, `{"title": "...", "branch": "..."}`. Files are named as in the repository; directories are not told.
"""

from __future__ import annotations

from .entries import Entry, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

TITLE_MARKS = ()  # the first line alone has one
_TITLE_RANK = 3


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """Every line does."""
    return True


def branch(first_line: bytes) -> None:
    """None: every record counts."""


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a record that has a role."""
    if record.get("role") not in ("user", "assistant"):
        return None
    tools = tuple([ToolUse(name, argument, kind) for name, kind, argument in record.get("tools", ())])
    return Entry(
        record["role"], record["text"], tools=tools, timestamp=record.get("at"), id=record["id"], offset=offset
    )


def title(record: Record) -> tuple[int, str] | None:
    """The title that the session has in the team."""
    return (_TITLE_RANK, record["title"]) if record.get("title") else None


def is_compaction(record: Record) -> bool:
    """No record marks one."""
    return False


def may_bring_results(line: bytes) -> bool:
    """No line does."""
    return False


def may_link(line: bytes) -> bool:
    """No line does."""
    return False


def written(record: Record, call_id: str) -> None:
    """None: what was written is not told."""
