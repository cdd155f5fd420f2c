"""A whole transcript, read once from its beginning in memory that does not grow with it."""

from __future__ import annotations

from ..system.files import os, read_at
from ..system.json import decode_line
from .entry_reader import first_line, offsets_beside
from .lines import BLOCK_BYTES, last_line_end

try:
    from orjson import loads
except ImportError:  # a hook has the standard library alone
    loads = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..runtimes import Runtime
    from .entries import Entry


def decode(line: bytes) -> tuple[list[Any], int]:
    """What `decode_line` gives, with orjson where it is installed: twice as quick, but it refuses lone surrogates."""
    if loads is not None:
        try:
            return [loads(line)], 0
        except ValueError:
            pass
    return decode_line(line)


def is_whole(line: bytes) -> bool:
    """Whether a last line without a line feed is all there, which that of a record being written never is.

    Many transcripts end so: copies, and files that another program wrote.
    """
    if not line.endswith(b"}"):
        return False
    records, unreadable = decode(line)
    return not unreadable and all(isinstance(record, dict) for record in records)


class Reading:
    """One pass over a transcript. After it, `title` (with its rank) and `unreadable` hold for what was read.

    Without tools the entries are those with text, and the lines of all others are not even decoded where they show it.
    """

    def __init__(self, runtime: Runtime, descriptor: int, *, with_tools: bool = True) -> None:
        self.title: tuple[int, str] = (-1, "")
        self.unreadable = 0
        self._runtime = runtime
        self._descriptor = descriptor
        self._with_tools = with_tools

    def entries(self) -> Iterator[Entry | None]:
        """The entries in file order, each id once; None where the runtime compacted the conversation."""
        runtime, with_tools = self._runtime, self._with_tools
        ids: set[int] = set()
        branch = runtime.RECORDS.branch(first_line(self._descriptor))
        lines_end, last = self._ends()
        if branch is not None and last:
            branch.holds(last)
        beside = offsets_beside(branch, self._descriptor, lines_end) if branch is not None else ()
        for offset, line in self._lines(lines_end + len(last)):
            records, rest = decode(line)
            self.unreadable += rest
            for record in records:
                if not isinstance(record, dict):
                    self.unreadable += 1
                    continue
                entry = runtime.RECORDS.entry(record, offset)
                if entry is None:
                    title = runtime.RECORDS.title(record)
                    if title is not None and title[0] >= self.title[0]:
                        self.title = title
                    elif runtime.RECORDS.is_compaction(record):
                        yield None
                    continue
                known = hash(entry.id)
                if offset in beside or (entry.id and known in ids) or not (entry.text or with_tools):
                    continue
                ids.add(known)
                if branch is not None:
                    branch.complete(entry)
                yield entry

    def _ends(self) -> tuple[int, bytes]:
        """The offset behind the last line feed, and what follows it, if that is whole."""
        size = os.fstat(self._descriptor).st_size
        end = last_line_end(self._descriptor, 0, size, size) or 0
        last = read_at(self._descriptor, end, size)
        return end, last if is_whole(last) else b""

    def _lines(self, end: int) -> Iterator[tuple[int, bytes]]:
        """The lines that begin before `end` and may matter, with their offsets. The line feed makes no difference."""
        may_matter, with_tools = self._runtime.RECORDS.may_matter, self._with_tools
        at = 0
        with open(self._descriptor, "rb", buffering=BLOCK_BYTES, closefd=False) as file:
            file.seek(0)
            for line in file:
                offset, at = at, at + len(line)
                if offset >= end:
                    return
                if may_matter(line, with_tools):
                    yield offset, line
