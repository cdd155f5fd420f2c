"""Shows the progress of reading many files: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...common.system.terminal import Terminal, byte_size
from ...common.text.format import counted
from ...history.store.values import Progress as Advance

LINE_SECONDS = 10.0
BAR_FROM_BYTES = 4_000_000  # less is done before a bar could be read
REFRESH_SECONDS = 0.1
BAR_CHARACTERS = 30


@contextmanager
def shown(terminal: Terminal, amount: Callable[[], tuple[int, int]]) -> Iterator[Advance]:
    """Yield a function to call with each file and the bytes read; show the progress on stderr.

    Progress is shown until the block ends, but not to programs, and without a bar for small
    amounts. `amount` returns the number of files and bytes."""
    if not terminal.is_json and not terminal.shows_status():
        yield _in_lines(terminal)
        return
    files, size = (0, 0) if terminal.is_json else amount()
    if size < BAR_FROM_BYTES:
        yield lambda path, read: None
        return
    try:
        yield _in_a_bar(terminal, files, size)
    finally:
        terminal.status("")


def _in_a_bar(terminal: Terminal, files: int, size: int) -> Advance:
    """Return a function that draws a bar.

    It uses no thread, because a process with threads could not fork the processes that read ahead.
    """
    began, shown_at, done = time.monotonic(), 0.0, 0
    paths: set[str] = set()

    def advance(path: str, read: int) -> None:
        nonlocal shown_at, done
        paths.add(path)
        done += read
        now = time.monotonic()
        if now - shown_at > REFRESH_SECONDS:
            shown_at = now
            bar = "━" * min(BAR_CHARACTERS, BAR_CHARACTERS * done // size)
            rate = byte_size(done / max(now - began, REFRESH_SECONDS))
            amounts = f"{byte_size(done)} of {byte_size(size)}, {rate}/s"
            terminal.status(f"  {len(paths)}/{files} files {bar:<{BAR_CHARACTERS}} {amounts}")

    return advance


def _in_lines(terminal: Terminal) -> Advance:
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
            terminal.log(f"  {counted(len(paths), 'file')}, {byte_size(size)}, {rate}/s")

    return advance
