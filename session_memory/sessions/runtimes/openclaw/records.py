"""Decodes the lines of mirrors of OpenClaw's sessions (see mirrors.py): Pi's records."""

from __future__ import annotations

from ....common.system.json import as_string, objects_in
from .. import records
from ..pi.records import PiBranch, PiRecords
from .rows import SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
        is_reset = record.get("type") == "reset"
        return (records.Compaction(),) if is_reset else super().messages(record, offset)


class OpenClawBranch(PiBranch):
    """The live branch of a session; nothing in a sub-agent's session counts."""

    def __init__(self, header: Record) -> None:
        super().__init__(header)
        self.is_of_subagent = bool(header.get("parent_id"))
        self.forked_from = as_string(header.get("parentSession"))

    def holds(self, line: bytes) -> bool:
        return super().holds(line) and not self.is_of_subagent
