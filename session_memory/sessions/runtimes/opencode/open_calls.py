"""Calls of OpenCode that have no result yet. Mirrors have them only once they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from ....common.system.json import as_object
from ...transcripts.entries import Entry, ToolUse
from .._evidence import ProcessEvidence, SessionPlace
from . import OpenCode
from .database import DatabaseReader, Error

_OPEN = ("pending", "running")
_SLACK_MILLISECONDS = 1000  # between the clocks of the database and of processes


class OpenCalls:
    """The open calls in the database of a runtime; none if it cannot be read."""

    def __init__(self, runtime: OpenCode, database: str) -> None:
        self._runtime = runtime
        self._database = database

    def added_to(
        self, evidence: Mapping[str, ProcessEvidence], sessions: Iterable[SessionPlace]
    ) -> dict[str, ProcessEvidence]:
        """Return the evidence of running sessions with open calls, by the paths of their mirrors.

        A call that an earlier process left open does not count."""
        known: dict[str, ProcessEvidence] = {}
        with suppress(Error), DatabaseReader(self._database) as opened:
            for session in sessions:
                before = evidence[session.path]
                began = round(before.opened_at * 1000) - _SLACK_MILLISECONDS
                calls = list(self._open_calls(opened, session.id, began))
                if calls:
                    known[session.path] = replace(
                        before,
                        calls=tuple(use for use, _ in calls),
                        called_at=calls[0][1] / 1000,
                    )
        return known

    def _open_calls(
        self, opened: DatabaseReader, session_id: str, since: int
    ) -> Iterator[tuple[ToolUse, int]]:
        """Yield the open calls of a session, each with its time in milliseconds."""
        for id, data, at in opened.parts_after(session_id, since):
            if as_object(data.get("state")).get("status") in _OPEN:
                record = {"type": "part", "id": id, "role": "assistant", "data": data}
                for event in self._runtime.records.messages(record, 0):
                    if isinstance(event, Entry):
                        yield from ((use, at) for use in event.tools)
