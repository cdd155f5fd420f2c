"""What the sub-agents of a session did: it stands in transcripts of theirs, or in its own, and is read where that has
something new."""

from __future__ import annotations

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

FILE_BYTES = 2 * 1024 * 1024  # what is read of one sub-agent at most


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
    """The entries of a transcript behind its offset, which goes on. Raises OSError."""
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        start = offsets.get(path, 0)
        if status.st_size == start or (path not in offsets and status.st_mtime < oldest):
            return []
        start = max(start if start < status.st_size else 0, status.st_size - FILE_BYTES)
        end = last_line_end(descriptor, start, status.st_size, FILE_BYTES) or start
        reader = TranscriptReader(runtime, first_line(descriptor), of_sub_agents=True)
        read = list(reader.forward(lines_forward(descriptor, start, end)))
        offsets.pop(path, None)
        offsets[path] = end
    finally:
        os.close(descriptor)
    entries = [one for one in read if isinstance(one, Entry)]
    return [one for one in entries if (one.timestamp or 0.0) >= oldest and not one.is_copy]
