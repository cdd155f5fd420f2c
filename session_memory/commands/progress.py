"""Shows the progress of an import or other reading of many files: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ..store.ingest.intake import pending
from ..store.ingest.sources import SourceDirectory
from ..store.sqlite.engine import SqliteStore
from ..store.values import Progress as Advance
from ..system.terminal import Terminal, byte_size
from ..text.format import counted

LINE_SECONDS = 10.0
BAR_FROM_BYTES = 4_000_000  # less is done before a bar could be read
REFRESH_SECONDS = 0.1


def shown(
    terminal: Terminal, store: SqliteStore, watched: Iterable[SourceDirectory]
) -> AbstractContextManager[Advance]:
    """Show the progress of an import: see `shown_of`."""
    return shown_of(terminal, lambda: pending(store, watched)[:2])


@contextmanager
def shown_of(terminal: Terminal, amount: Callable[[], tuple[int, int]]) -> Iterator[Advance]:
    """Yield a function to call with each file and the bytes read of it; show the progress on stderr until the block
    ends. Nothing is shown for programs or for small amounts. `amount` returns the number of files and bytes."""
    if terminal.is_json or not sys.stderr.isatty():
        yield _Lines().advance if not terminal.is_json else _silent
        return
    files, size = amount()
    if size < BAR_FROM_BYTES:
        yield _silent
        return
    with _bar(files, size) as progress:
        yield progress


class _Lines:
    """A line every LINE_SECONDS: for a log."""

    def __init__(self) -> None:
        self._began = self._said = time.monotonic()
        self._paths: set[str] = set()
        self._bytes = 0

    def advance(self, path: str, size: int) -> None:
        """Take note of bytes that were read of a file."""
        self._paths.add(path)
        self._bytes += size
        now = time.monotonic()
        if now - self._said >= LINE_SECONDS:
            self._said = now
            rate = byte_size(self._bytes / (now - self._began))
            print(f"  {counted(len(self._paths), 'file')}, {byte_size(self._bytes)}, {rate}/s", file=sys.stderr)


@contextmanager
def _bar(files: int, size: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("  {task.fields[done]}/{task.fields[files]} files"), BarColumn(), DownloadColumn(),
        TransferSpeedColumn(),
    )  # fmt: skip
    paths: set[str] = set()
    shown_at = 0.0
    # Without a thread of its own: from a process with several threads no others can be forked to read ahead.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=size, files=files, done=0)

        def advance(path: str, read: int) -> None:
            nonlocal shown_at
            paths.add(path)
            bar.update(task, advance=read, done=len(paths))
            if time.monotonic() - shown_at > REFRESH_SECONDS:
                shown_at = time.monotonic()
                bar.refresh()

        yield advance


def _silent(path: str, size: int) -> None:
    pass
