"""What the sub-agents of a session did: it stands in transcripts of theirs, or in its own, and is read where that has
something new."""

from __future__ import annotations

from itertools import takewhile

from ..system.files import open_regular, os
from ..transcripts.entries import Entry
from ..transcripts.lines import first_line, last_line_end, lines_forward
from ..transcripts.reader import TranscriptReader
from .touches import touches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..runtimes import Runtime
    from .touches import Touch

DECODED_BYTES = 2 * 1024 * 1024  # of one sub-agent at most: the rest is read the next time
READ_BYTES = 16 * 1024 * 1024  # of one sub-agent at most


def sub_agent_touches(
    transcripts: Iterable[str],
    runtime: Runtime,
    offsets: dict[str, int],
    oldest: float,
    is_wanted: Callable[[str], bool],
    directories: Collection[str] | None = None,
) -> list[Touch]:
    """What the sub-agents of a session with these `transcripts` did in `directories` (None for all) behind `offsets`,
    those up to which they were read, which go on; at first, since the time `oldest`. Of the commands only those are
    looked into that `is_wanted`."""
    found: list[Touch] = []
    for path in transcripts:
        try:
            entries = _read_on(path, runtime, offsets, oldest)
        except OSError:
            continue
        if directories is not None:
            entries = [entry for entry in entries if entry.cwd in directories]
        for touch in touches_of(entries, is_wanted):
            touch.transcript = path
            found.append(touch)
    return found


def _read_on(path: str, runtime: Runtime, offsets: dict[str, int], oldest: float) -> list[Entry]:
    """Return the entries of a transcript behind its offset, which goes on. Raises OSError."""
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        start = offsets.get(path, 0)
        if status.st_size == start or (path not in offsets and status.st_mtime < oldest):
            return []
        start = start if start < status.st_size else 0
        end = last_line_end(descriptor, start, status.st_size, status.st_size) or start
        reader = TranscriptReader(runtime, first_line(descriptor), of_sub_agents=True)
        reader.reached = start
        lines = lines_forward(descriptor, start, end, start + READ_BYTES)
        read = list(reader.forward(takewhile(lambda _: reader.decoded < DECODED_BYTES, lines)))
        offsets.pop(path, None)
        offsets[path] = reader.reached
    finally:
        os.close(descriptor)
    entries = [one for one in read if isinstance(one, Entry)]
    return [one for one in entries if (one.timestamp or 0.0) >= oldest and not one.is_copy]
