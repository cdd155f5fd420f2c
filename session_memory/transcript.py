"""A whole transcript, read once from its beginning in memory that does not grow with it."""

from __future__ import annotations

from .entry_reader import first_line, offsets_beside
from .fastjson import decode_line
from .files import os
from .tail import last_line_end, lines_forward

try:
    from orjson import loads
except ImportError:  # a hook has the standard library alone
    loads = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .entries import Entry
    from .runtimes import Runtime


def decode(line: bytes) -> tuple[list[Any], int]:
    """What `decode_line` gives, with orjson where it is installed: twice as quick, but it refuses lone surrogates."""
    if loads is not None:
        try:
            return [loads(line)], 0
        except ValueError:
            pass
    return decode_line(line)


class Reading:
    """One pass over a transcript. After it, `title` (with its rank) and `unreadable` hold for what was read."""

    def __init__(self, runtime: Runtime, descriptor: int) -> None:
        self.title: tuple[int, str] = (-1, "")
        self.unreadable = 0
        self._runtime = runtime
        self._descriptor = descriptor

    def entries(self) -> Iterator[Entry | None]:
        """The entries in file order, each id once; None where the runtime compacted the conversation."""
        ids: set[int] = set()
        size = os.fstat(self._descriptor).st_size
        trail = self._runtime.trail(first_line(self._descriptor))
        end = last_line_end(self._descriptor, 0, size, size) or 0
        beside = offsets_beside(trail, self._descriptor, end) if trail is not None else ()
        may_matter, entry_of = self._runtime.may_matter, self._runtime.entry
        for offset, line in lines_forward(self._descriptor, 0, size):
            if not line or not may_matter(line):
                continue
            records, rest = decode(line)
            self.unreadable += rest
            for record in records:
                if not isinstance(record, dict):
                    self.unreadable += 1
                    continue
                entry = entry_of(record, offset)
                if entry is None:
                    title = self._runtime.title(record)
                    if title is not None and title[0] >= self.title[0]:
                        self.title = title
                    elif self._runtime.is_compaction(record):
                        yield None
                    continue
                known = hash(entry.id)
                if offset in beside or (entry.id and known in ids):
                    continue
                ids.add(known)
                if trail is not None:
                    trail.complete(entry)
                yield entry
