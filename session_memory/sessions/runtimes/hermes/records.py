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


class HermesRecords(atif.HeadedRecords):
    """The first line names the session; all others belong to a trajectory.

    A prompt has the text that hooks added to it. Each step names the one before it: a prompt
    without an answer has no next step, because Hermes sends its context no more."""

    HEADER = SESSION

    def links(self, record: Record) -> Iterable[Event]:
        if record.get("type") != atif.STEP or "parent" not in record:
            return ()
        parent = as_string(record["parent"])
        return (records.ParentLink(as_string(record.get("id")), parent, True),)
