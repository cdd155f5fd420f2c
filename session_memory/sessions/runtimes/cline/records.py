"""Decodes the lines of mirrors of Cline's sessions (see mirrors.py): steps of a trajectory."""

from __future__ import annotations

from ....common.system.json import objects_in
from ..atif import records as atif

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Record

SESSION = "cline_session"


class ClineRecords(atif.AtifRecords):
    """The first line names the session; all others belong to a trajectory."""

    def recognises(self, line: bytes) -> bool:
        return line.startswith(b'{"type": "%b"' % SESSION.encode())

    def owns(self, record: Record) -> bool:
        return record.get("type") == SESSION

    def open_transcript(self, first_line: bytes) -> atif.MirroredTrajectory:
        header = next(iter(objects_in(first_line)), {})
        is_header = self.owns(header)
        return atif.MirroredTrajectory({**header, "type": atif.SESSION} if is_header else header)
