"""Parses the files in which upkeep keeps the recent entries of a team's sessions: one JSON object a line.

`{"role": "user", "text": "...", "at": 1780000000.5, "id": "...", "tools": [["Edit", "edit", "src/a.py"]]}`, or, as the
first line, `{"title": "...", "branch": "..."}`. File names are relative to the repository; directories are not
included.
"""

from __future__ import annotations

from ..runtimes.records import MESSAGES, Records, Title
from .entries import Entry, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.records import Event, Record

_TITLE_RANK = 3


class TeamRecords(Records):
    """The records of a team's session: only entries and a title."""

    def events(self, record: Record, offset: int, wanted: int) -> list[Event]:
        if not wanted & MESSAGES:
            return []
        if record.get("role") in ("user", "assistant"):
            tools = tuple([ToolUse(name, argument, kind) for name, kind, argument in record.get("tools", ())])
            text, at = record["text"], record.get("at")
            return [Entry(record["role"], text, tools=tools, timestamp=at, id=record["id"], offset=offset)]
        return [Title(_TITLE_RANK, record["title"])] if record.get("title") else []
