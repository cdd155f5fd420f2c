"""Calls of OpenCode that have no result yet. Mirrors have them only once they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from ....common.system.json import as_object
from ...transcripts.entries import Entry, ToolUse
from .._evidence import WAITING, ProcessEvidence, SessionPlace
from . import RUNTIME
from .database import DatabaseReader, Error

_OPEN = ("pending", "running")
_QUESTION = "question"  # the tool that asks the user
_SLACK_MILLISECONDS = 1000  # between the clocks of the database and of processes


def with_open_calls(
    database: str, sessions: Iterable[SessionPlace], evidence: Mapping[str, ProcessEvidence]
) -> dict[str, ProcessEvidence]:
    """Return the evidence of running sessions with open calls, by the paths of their mirrors.

    A call that an earlier process left open does not count. Without a readable database, return
    nothing."""
    known: dict[str, ProcessEvidence] = {}
    with suppress(Error), DatabaseReader(database) as opened:
        for session in sessions:
            before = evidence[session.path]
            began = before.process.began * 1000 if before.process else 0.0
            calls = list(_open_calls(opened, session.id, round(began) - _SLACK_MILLISECONDS))
            if calls:
                called_at = calls[0][1] / 1000
                asks = any(use.name == _QUESTION for use, _ in calls)
                noted = WAITING if asks else ""
                uses = tuple(use for use, _ in calls)
                known[session.path] = replace(
                    before, calls=uses, called_at=called_at, noted=noted, since=called_at
                )
    return known


def _open_calls(
    opened: DatabaseReader, session_id: str, since: int
) -> Iterator[tuple[ToolUse, int]]:
    """Yield the open calls of a session, each with its time in milliseconds."""
    for id, data, at in opened.parts_after(session_id, since):
        if as_object(data.get("state")).get("status") in _OPEN:
            record = {"type": "part", "id": id, "role": "assistant", "data": data}
            for event in RUNTIME.records.messages(record, 0):
                if isinstance(event, Entry):
                    yield from ((use, at) for use in event.tools)
