"""Shows the progress of an import or other reading of many files: a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..store.values import Progress as Advance
from ..system.terminal import Terminal, byte_size
from ..text.format import counted

LINE_SECONDS = 10.0
BAR_FROM_BYTES = 4_000_000  # less is done before a bar could be read
REFRESH_SECONDS = 0.1


@contextmanager
def shown(terminal: Terminal, amount: Callable[[], tuple[int, int]]) -> Iterator[Advance]:
    """Yield a function to call with each file and the bytes read of it; show the progress on stderr until the block
    ends. Nothing is shown for programs, no bar for small amounts. `amount` returns the number of files and bytes."""
    if not terminal.is_json and not sys.stderr.isatty():
        yield _in_lines()
        return
    files, size = (0, 0) if terminal.is_json else amount()
    if size < BAR_FROM_BYTES:
        yield lambda path, read: None
        return
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


def _in_lines() -> Advance:
    """Return a function that prints a line every LINE_SECONDS, for a log."""
    began = printed_at = time.monotonic()
    paths: set[str] = set()
    size = 0

    def advance(path: str, read: int) -> None:
        nonlocal printed_at, size
        paths.add(path)
        size += read
        now = time.monotonic()
        if now - printed_at >= LINE_SECONDS:
            printed_at = now
            rate = byte_size(size / (now - began))
            print(f"  {counted(len(paths), 'file')}, {byte_size(size)}, {rate}/s", file=sys.stderr)

    return advance
