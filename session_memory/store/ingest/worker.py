"""What a process does that reads transcripts ahead for another one (ahead.py): it is told its files, and writes what it
reads of them into its pipe, until that is full. So it ends when nobody reads any more, however that came.

It is started for little work, so it imports little.
"""

from __future__ import annotations

import marshal
import os

from ...runtimes.recognition import runtime_of
from ...system.files import open_regular
from ..values import NewEntry, NewTool, ToolOutcome
from .extract import Extract, Extractor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

Task = tuple[int, str]  # the number of a file, and its path

SIZE_BYTES = 8
NICENESS = 5  # everything waits for the one process that stores it all


def read_all(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    """Reads its tasks from `stdin`, and does them."""
    tasks, home, limit = marshal.load(stdin)
    read_tasks(tasks, home, limit, stdout)


def read_tasks(tasks: list[Task], home: str, limit: int, stdout: IO[bytes]) -> None:
    """Writes frames: the size of what follows, the number of a file, and a piece of it. A file of which nothing can be
    read, or which is nobody's, has none: whoever asked finds that out."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    for number, path in tasks:
        try:
            for piece in read_pieces(path, home, limit):
                frame = packed(number, piece)
                stdout.write(len(frame).to_bytes(SIZE_BYTES, "little") + frame)
                stdout.flush()
        except BrokenPipeError:
            return
        except OSError:
            continue


def read_pieces(path: str, home: str, limit: int) -> Iterator[Extract]:
    """A transcript as it is now, in pieces of about `limit` bytes; none if it is nobody's. Raises OSError."""
    descriptor = open_regular(path)
    try:
        runtime = runtime_of(descriptor)
        if runtime is None:
            return
        reader = Extractor(runtime, descriptor, home)
        end = os.fstat(descriptor).st_size
        start, is_last = 0, False
        while not is_last:
            piece = reader.read(start, end, limit)
            start, is_last = piece.reached, piece.is_last
            yield piece
    finally:
        os.close(descriptor)


def packed(number: int, piece: Extract) -> bytes:
    """A piece of the file of this number as bytes, in a third of the time of `pickle`."""
    entries = [
        (*entry[:-1], [(*tool[:-1], tool.ended and tuple(tool.ended)) for tool in entry.tools])
        for entry in piece.entries
    ]
    outcomes = [(call, tuple(ended)) for call, ended in piece.outcomes]
    return marshal.dumps((number, (*piece._replace(entries=[], outcomes=[]),), entries, outcomes))


def unpacked(frame: bytes) -> tuple[int, Extract]:
    """What `packed` made bytes of."""
    number, values, entries, outcomes = marshal.loads(frame)
    return number, Extract._make(values)._replace(
        entries=[NewEntry._make((*entry, tuple([_tool(*tool) for tool in tools]))) for *entry, tools in entries],
        outcomes=[(call, ToolOutcome(*ended)) for call, ended in outcomes],
    )


def _tool(key: int, call: int, name: str, kind: str, argument: str, ended: tuple[str, str, int, int] | None) -> NewTool:
    return NewTool(key, call, name, kind, argument, ended and ToolOutcome(*ended))
