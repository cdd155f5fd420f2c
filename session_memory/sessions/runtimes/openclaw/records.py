"""Decodes the lines of mirrors of OpenClaw's sessions (see mirrors.py): Pi's records."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, objects_in
from ...transcripts.entries import Entry
from .. import records
from ..pi.records import PiBranch, PiRecords, given_to
from . import RUNTIME
from .rows import SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ..records import Event, Record


class OpenClawRecords(PiRecords):
    """The first line names the session; all others are Pi's records."""

    def recognises(self, line: bytes) -> bool:
        return line.startswith(b'{"type":"%b"' % SESSION.encode())

    def owns(self, record: Record) -> bool:
        return record.get("type") == SESSION

    def open_transcript(self, first_line: bytes) -> OpenClawBranch | None:
        header = next(iter(objects_in(first_line)), {})
        return OpenClawBranch(header) if self.owns(header) else None

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        """Return the entry, title or compaction; `/new` begins a history window in the session."""
        if record.get("type") == "reset":
            return (records.Compaction(),)
        message, events = as_object(record.get("message")), list(super().messages(record, offset))
        for event in events:
            if isinstance(event, Entry) and event.role == "assistant" and event.tools:
                parts = [
                    RUNTIME.parts(use, given_to(message, use.call_id)[0]) for use in event.tools
                ]
                event.tools = tuple([part for each in parts for part in each])
        return events

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import patch_edits

        given, number = given_to(as_object(record.get("message")), call_id)
        patch = as_string(given.get("input"))
        return patch_edits(patch, number) if patch else super().edits(record, call_id)


class OpenClawBranch(PiBranch):
    """The live branch of a session; nothing in a sub-agent's session counts."""

    def __init__(self, header: Record) -> None:
        super().__init__(header)
        self.is_of_subagent = bool(header.get("parent_id"))
        self.forked_from = as_string(header.get("parentSession"))

    def holds(self, line: bytes) -> bool:
        return super().holds(line) and not self.is_of_subagent
