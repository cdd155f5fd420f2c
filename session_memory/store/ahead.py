"""Reading ahead: files that are taken in for the first time are read by several processes, and stored by one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..files import open_regular
from .reading import Piece, Reader
from .recognising import runtime_of
from .sources import Found

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

LEAST_BYTES = 256 * 1024 * 1024  # below which the processes would start for too little
WINDOW = 4  # files a process that are read before they are asked for


class ReadAhead:
    """The first pieces of files, to be asked for in the order in which the files are given."""

    def __init__(self, found: Iterable[Found], home: str, limit: int, workers: int) -> None:
        self._ahead = deque(found)
        self._home = home
        self._limit = limit
        self._pieces: dict[str, Future[Piece | None]] = {}
        self._workers = workers if sum(one.size for one in self._ahead) >= LEAST_BYTES else 0
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> ReadAhead:
        if self._workers > 1:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            # Started anew: a fork would take over the open database.
            self._pool = ProcessPoolExecutor(self._workers, get_context("spawn"))
            self._submit()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def piece(self, found: Found, inode: int, size: int) -> Piece | None:
        """The first piece of a file, if it was read ahead while it was the file that it is now."""
        future = self._pieces.pop(found.path, None)
        if future is None:
            return None
        self._submit()
        try:
            piece = future.result()
        except (OSError, RuntimeError):  # a process that was killed, say: what it should have done is done here
            return None
        return piece if piece is not None and piece.inode == inode and piece.size <= size else None

    def _submit(self) -> None:
        while self._pool is not None and self._ahead and len(self._pieces) < WINDOW * self._workers:
            found = self._ahead.popleft()
            try:
                self._pieces[found.path] = self._pool.submit(read_first_piece, found.path, self._home, self._limit)
            except RuntimeError:  # a pool that broke
                self._pool = None


def read_first_piece(path: str, home: str, limit: int) -> Piece | None:
    """About the first `limit` bytes of a transcript; None if it is nobody's."""
    descriptor = open_regular(path)
    try:
        runtime = runtime_of(descriptor)
        if runtime is None:
            return None
        status = os.fstat(descriptor)
        return Reader(runtime, descriptor, home).read(0, status.st_size, limit)
    finally:
        os.close(descriptor)
