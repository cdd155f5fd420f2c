"""Reads the marks of all messages in a transcript and its sub-agents' transcripts.

The marks identify messages to forget, and copies of forgotten ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from ..common.system.files import Opened
from ..common.system.quick_json import decode_line
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.detection import runtime_of
from ..sessions.settings.forgotten import ForgottenSessions
from ..sessions.transcripts.entries import Entry
from ..sessions.transcripts.lines import first_line, lines_forward
from ..sessions.transcripts.marks import marks_of
from ..sessions.transcripts.mirror import mark_of
from ..sessions.transcripts.reader import TranscriptReader


def marks_in(transcript: str, home: str, until: int) -> Iterator[str]:
    """Yield the marks of a transcript's messages in the group `home`, up to a time in milliseconds.

    Messages on abandoned branches count too. An unreadable transcript has no marks."""
    with suppress(OSError):
        with Opened(transcript) as descriptor:
            runtime = runtime_of(descriptor)
        if runtime is None:
            return
        for path in dict.fromkeys([transcript, *runtime.sub_agents(transcript)]):
            with suppress(OSError):
                for entry in _entries(runtime, path):
                    if (entry.timestamp or 0.0) * 1000 <= until:
                        yield from marks_of(home, entry)


def repeats(transcript: str, forgotten: ForgottenSessions, session_id: str) -> bool:
    """Check if a transcript, or a mirror's session, repeats a forgotten message. Raises OSError."""
    if not forgotten:
        return False
    with Opened(transcript) as descriptor:
        runtime = runtime_of(descriptor)
    if runtime is None or mark_of(transcript).get("repeats_forgotten"):
        return runtime is not None
    return any(forgotten.holds(entry, session_id) for entry in _entries(runtime, transcript))


def _entries(runtime: Runtime, path: str) -> Iterator[Entry]:
    """Yield the session's entries in a transcript, then its sub-agents' entries."""
    with Opened(path) as descriptor:
        first, size = first_line(descriptor), os.fstat(descriptor).st_size
        for of_sub_agents in (False, True):
            reader = TranscriptReader(runtime, first, decode_line, of_sub_agents=of_sub_agents)
            for event in reader.forward(lines_forward(descriptor, 0, size)):
                if isinstance(event, Entry):
                    yield event
