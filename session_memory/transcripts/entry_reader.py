"""The entries in the lines of a transcript, from its last line to its first: what no longer counts is left out."""

from __future__ import annotations

from ..system.files import read_at
from ..system.json import decode_line
from .lines import windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..runtimes import Branch, Runtime
    from .entries import Entry
    from .lines import Line

FIRST_LINE_BYTES = 8 * 1024
NO_TITLE = (-1, "")


class EntryReader:
    """Reads one transcript backwards. `title` (with its rank) is the best it met, the last of several; `unreadable`
    counts records that could not be decoded."""

    def __init__(self, runtime: Runtime, first_line: bytes) -> None:
        self.title: tuple[int, str] = NO_TITLE
        self.unreadable = 0
        self._runtime = runtime
        self._branch = runtime.RECORDS.branch(first_line)

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """The entries in `lines`, which are given and read from the last to the first."""
        branch = self._branch
        for offset, line in lines:
            counts = branch is None or branch.holds(line)
            if not line or not self._runtime.RECORDS.may_matter(line):
                continue
            records, unreadable = decode_line(line)
            self.unreadable += unreadable
            for record in reversed(records):
                if not isinstance(record, dict):
                    self.unreadable += 1
                    continue
                entry = self._runtime.RECORDS.entry(record, offset)
                if entry is None:
                    self._take_title(self._runtime.RECORDS.title(record))
                elif counts:
                    if branch is not None:
                        branch.complete(entry)
                    yield entry

    def _take_title(self, title: tuple[int, str] | None) -> None:
        if title is not None and title[0] > self.title[0]:
            self.title = title


def first_line(descriptor: int) -> bytes:
    """The first line of a file, without its line feed, as far as FIRST_LINE_BYTES reach."""
    return read_at(descriptor, 0, FIRST_LINE_BYTES).partition(b"\n")[0]


def offsets_beside(branch: Branch, descriptor: int, end: int) -> set[int]:
    """The offsets of the lines before `end` that do not count, for one who reads the whole file forward."""
    windows = windows_backward(descriptor, 0, end)
    return {offset for lines in windows for offset, line in reversed(lines) if not branch.holds(line)}
