"""Shows the progress of an import or other reading of many files: a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..store.values import Progress as Advance
from ..system.terminal import Terminal

BAR_FROM_BYTES = 4_000_000  # less is done before a bar could be read
REFRESH_SECONDS = 0.1


@contextmanager
def shown(terminal: Terminal, amount: Callable[[], tuple[int, int]]) -> Iterator[Advance]:
    """Yield a function to call with each file and the bytes read of it; show the progress on stderr, if a person sees
    it, until the block ends. Nothing is shown for small amounts. `amount` returns the number of files and bytes."""
    files, size = amount() if sys.stderr.isatty() and not terminal.is_json else (0, 0)
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
