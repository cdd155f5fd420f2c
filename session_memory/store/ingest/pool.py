"""Reading ahead: files that are taken in for the first time are read by other processes, and stored by this one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING

from .worker import unpacked
from .worker_start import may_fork, start

if TYPE_CHECKING:
    from .extract import Extract
    from .sources import SourceFile
    from .worker import Task
    from .worker_start import Process

LEAST_BYTES = 24 * 1024 * 1024  # below which the processes would start for too little
WAITING_PIECES = 8  # of each process
MOST_PROCESSES = 4  # read more than one can store


class ReadAhead:
    """What stands in files, to be asked for in the order in which the files are given; `limit` is about how many bytes
    of a file are in one piece."""

    def __init__(self, found: Iterable[SourceFile], home: str, limit: int, workers: int) -> None:
        files = list(found)
        self._numbers: dict[str, int] = {}
        self._of_file: dict[int, _Worker] = {}
        self._following = 0  # the number of the file that will be asked for next
        self._workers: list[_Worker] = []
        if workers < 2 or not files or sum(file.size for file in files) < LEAST_BYTES or not sys.executable:
            return
        if files[0].size <= limit and not may_fork():
            del files[0]  # for the caller, who has nothing else to do while the processes start
        self._numbers = {file.path: number for number, file in enumerate(files)}
        tasks = _shared_out(files, min(workers, len(files), MOST_PROCESSES))
        # A thread in this process keeps further ones from being forked.
        self._workers = [_Worker(process) for process in start(tasks, home, limit)]
        self._of_file = {number: worker for own, worker in zip(tasks, self._workers) for number, _ in own}

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()

    def extracts(self, found: SourceFile, inode: int, size: int) -> Iterator[Extract]:
        """The pieces of a file, from its beginning, as far as they were read ahead while it was the file that it is
        now. Where they end before the last one, the caller is to read on."""
        number = self._numbers.pop(found.path, -1)
        worker = self._of_file.get(number)
        if worker is None:
            return
        self._following = number + 1
        while (piece := worker.piece_of(number)) is not None and piece.inode == inode and piece.size <= size:
            yield piece
            if piece.is_last:
                return

    def is_behind(self) -> bool:
        """Whether nothing was read as yet of the file that will be asked for next."""
        worker = self._of_file.get(self._following)
        return worker is not None and not worker.has_piece()


class _Worker:
    """A process that reads, and a thread that takes over from its pipe what it has read."""

    def __init__(self, process: Process) -> None:
        self._frames: Queue[bytes] = Queue(WAITING_PIECES)
        self._next: tuple[int, Extract] | None = None
        self._process = process
        self._thread = Thread(target=self._take_over, daemon=True)
        self._thread.start()

    def piece_of(self, number: int) -> Extract | None:
        """The next piece of a file; None if it has no more, or the process is gone. Earlier files are passed over."""
        while True:
            if self._next is None:
                frame = self._frames.get()
                if not frame:
                    self._frames.put(b"")  # and that stays so
                    return None
                self._next = unpacked(frame)
            at, piece = self._next
            if at > number:
                return None
            self._next = None
            if at == number:
                return piece

    def has_piece(self) -> bool:
        return self._next is not None or not self._frames.empty()

    def stop(self) -> None:
        """Ends the process, whatever it is doing."""
        self._process.stop()
        while self._thread.is_alive():
            try:
                self._frames.get_nowait()
            except Empty:
                self._thread.join(0.001)

    def _take_over(self) -> None:
        try:
            for frame in self._process.frames():
                self._frames.put(frame)
        except OSError:  # a process that was killed, say: what it should have done is done by the caller
            pass
        finally:
            self._frames.put(b"")


def _shared_out(files: list[SourceFile], number: int) -> list[list[Task]]:
    """The files for each of so many processes, each in order: the next one goes to the one that has least to read."""
    tasks: list[list[Task]] = [[] for _ in range(number)]
    sizes = [0] * number
    for at, file in enumerate(files):
        least = sizes.index(min(sizes))
        tasks[least].append((at, file.path))
        sizes[least] += file.size
    return tasks
