"""Compares the time when this session last read or wrote a file with the file's own time.

It serves calls whose check against other sessions ran out of time, so only the end of this
session's transcript is read.
"""

from __future__ import annotations

from ...common.system.files import read_end, without_links
from ...common.system.json import objects_in
from ...common.text.paths import resolved
from ...sessions.runtimes.records import CALLS, MESSAGES, RESULTS, SUB_AGENTS, CallResult
from ...sessions.transcripts.entries import Entry
from .actions import EDIT, READ
from .collisions._evidence import grain_of
from .collisions.facts import SLACK_SECONDS
from .session_state import KnownState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import stat_result

    from ...sessions.runtimes.records import Event, Records
    from .changes import OwnSession

END_BYTES = 1024 * 1024  # of the transcript
_SETS = (MESSAGES | CALLS | RESULTS, MESSAGES | CALLS | RESULTS | SUB_AGENTS)


def may_differ(session: OwnSession, path: str, status: stat_result | None) -> bool:
    """Check if a file may differ from the version that the session last read or wrote.

    `status` is None for a missing file. A missing file without any call of the session is new; any
    other file without a call may differ."""
    last = max(
        [_last_in(at, path, session) for at in (session.path, *session.sub_agents())], default=0.0
    )
    last = last or _last_at_prompt(session, path)
    if status is None:
        return last > 0
    return status.st_mtime + grain_of(status.st_mtime) > last + SLACK_SECONDS


def _last_in(transcript: str, path: str, session: OwnSession) -> float:
    """Return the time of the last call that read or edited the file; 0 if there is none.

    Only the end of the transcript is searched."""
    records, name = session.runtime.records, path.rpartition("/")[2].encode("utf-8", "replace")
    lines = read_end(transcript, END_BYTES).split(b"\n")
    for at in range(len(lines) - 1, -1, -1):
        if name in lines[at] or b"\\u" in lines[at]:
            for entry, record in _entries(lines[at], records):
                for call in reversed(entry.tools):
                    is_it = (
                        call.kind in (EDIT, READ)
                        and without_links(resolved(call.argument, entry.cwd)) == path
                    )
                    if is_it and call.kind == READ:
                        return entry.timestamp or 0.0
                    ended = _ended(lines[at:], call.call_id, records) if is_it else None
                    if ended is not None:
                        return max(ended, records.time(record) or 0.0)
    return 0.0


def _entries(line: bytes, records: Records) -> list[tuple[Entry, dict[str, object]]]:
    pairs = [(event, record) for record in objects_in(line) for event in _events(record, records)]
    return [(event, record) for event, record in pairs if isinstance(event, Entry)]


def _ended(lines: list[bytes], call_id: str, records: Records) -> float | None:
    """Return when a call that succeeded ended; None for any other."""
    wanted = call_id.partition(":")[0].encode("utf-8", "replace")
    for line in lines:
        for record in objects_in(line) if wanted and wanted in line else ():
            events = _events(record, records)
            ends = [event for event in events if isinstance(event, CallResult)]
            if end := CallResult.of_call(call_id, ends):
                return None if end.has_failed else records.time(record)
    return None


def _events(record: dict[str, object], records: Records) -> list[Event]:
    return [event for wanted in _SETS for event in records.events(record, 0, wanted)]


def _last_at_prompt(session: OwnSession, path: str) -> float:
    """Return when the session last read or edited the file, according to its last prompt, or 0."""
    from .collisions._working_set import CollisionState

    try:
        kept = KnownState(session.cursor_file).of(session.key).collisions
    except OSError:
        return 0.0
    state = CollisionState.load(kept or "", 0.0)
    return max([action.time for action in state.working_set.actions.get(path, ())], default=0.0)
