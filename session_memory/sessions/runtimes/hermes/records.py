"""Decodes the lines of mirrors of Hermes's sessions (see mirrors.py): steps of a trajectory."""

from __future__ import annotations

from ....common.system.json import as_string
from .. import records
from ..atif import records as atif

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records import Event, Record

SESSION = "hermes_session"
_CONTEXT = b'"context": "'


class HermesRecords(atif.HeadedRecords):
    """The first line names the session; all others belong to a trajectory.

    A prompt has the text that hooks added to it. Each step names the one before it: a prompt
    without an answer has no next step, because Hermes sends its context no more."""

    HEADER = SESSION

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return super().may_hold(line, wanted) or bool(wanted.injected and _CONTEXT in line)

    def injected(self, record: Record) -> Iterable[Event]:
        text = as_string(record.get("context")) if record.get("type") == atif.STEP else ""
        return (records.Injected((text,)),) if text else ()

    def links(self, record: Record) -> Iterable[Event]:
        if record.get("type") != atif.STEP or "parent" not in record:
            return ()
        parent = as_string(record["parent"])
        return (records.ParentLink(as_string(record.get("id")), parent, True),)
