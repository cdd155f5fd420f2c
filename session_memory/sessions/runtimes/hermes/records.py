"""Decodes the lines of mirrors of Hermes's sessions (see mirrors.py): steps of a trajectory."""

from __future__ import annotations

from ....common.system.json import as_string
from .. import records
from ..atif import records as atif

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records import Event, Record

SESSION, USAGE = "hermes_session", "usage"

_USAGE = b'{"type": "usage"'


class HermesRecords(atif.HeadedRecords):
    """The first line names the session; all others belong to a trajectory.

    A prompt has the text that hooks added to it. Each step names the one before it: a prompt
    without an answer has no next step, because Hermes sends its context no more."""

    HEADER = SESSION

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return super().may_hold(line, wanted) or (wanted.usage and line.startswith(_USAGE))

    def usage(self, record: Record) -> Iterable[Event]:
        """Return the tokens of a model since the line before."""
        if record.get("type") != USAGE:
            return ()
        from ...transcripts.usage import ModelUsage, amount

        usage = record.get("usage")
        return (
            ModelUsage(
                as_string(record.get("id")),
                as_string(record.get("model")),
                input=amount(usage, "input_tokens"),
                output=amount(usage, "output_tokens"),
                cached=amount(usage, "cache_read_tokens"),
                written=amount(usage, "cache_write_tokens"),
            ),
        )

    def links(self, record: Record) -> Iterable[Event]:
        if record.get("type") != atif.STEP or "parent" not in record:
            return ()
        parent = as_string(record["parent"])
        return (records.ParentLink(as_string(record.get("id")), parent, True),)
