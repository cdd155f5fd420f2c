"""Reading ahead: other processes read new files, and this process stores them."""

from __future__ import annotations

import gc
import marshal
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.system.files import Opened
from ....common.text.secrets import scan  # noqa: F401 - loaded once, not by each fork for itself
from ....sessions.runtimes.detection import runtime_of
from ....sessions.runtimes.outside import OutsideAnswers
from ....sessions.runtimes.table import built_in_runtimes
from .extract import Extract, Extractor
from .sources import SourceFile
from .values import NewEntry, NewTool, ToolOutcome

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from ....sessions.settings.forgotten import ForgottenSessions

LEAST_BYTES = 24 * 1024 * 1024  # below which the processes would start for too little
TASK_BYTES = 4 * 1024 * 1024  # small files are read together, up to this size
SPAN_BYTES = 4 * 1024 * 1024  # of a large file, to limit memory
MOST_PROCESSES = 4  # these read more than one process can store
WAITING_TASKS = 4  # of each process, done or not, to limit memory
NICENESS = 5  # everything waits for the one process that stores the results
# lists each thread of this process, including libraries' threads
_THREADS = "/proc/self/task"
_new: Any = tuple.__new__  # of a named tuple, in half the time of its `_make`
# of the file that this process read last, by its status: see Extractor.off_branch
_off_branch: dict[tuple[int, ...], dict[int, set[int]]] = {}


class Span(NamedTuple):
    """The lines of a file that begin in `[start, stop)`, or up to its end if `stop` is 0."""

    path: str
    start: int
    stop: int


class ReadAhead:
    """The content of files, requested in the order of the files.

    `limit` is the approximate size of an extract in bytes. Nothing is read ahead without `workers`,
    or if no processes can be started."""

    def __init__(
        self,
        files: Iterable[SourceFile],
        home: str,
        limit: int,
        workers: int,
        line_key: bytes = b"",
        forgotten: ForgottenSessions | None = None,
    ) -> None:
        self._home = home
        self._line_key = line_key
        self._forgotten = forgotten
        self._tasks: list[list[Span]] = []
        # the task of each file's first span, and its index in the task; the others follow
        self._places: dict[str, tuple[int, int]] = {}
        self._futures: dict[int, Future[list[bytes]]] = {}
        self._pool: ProcessPoolExecutor | None = None
        unread = [file for file in files if file.size]
        if workers < 2 or not unread or sum(file.size for file in unread) < LEAST_BYTES:
            return
        # imported late: this takes a tenth of a search's processor time, and a search rarely starts
        # processes
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        self._share_out(unread, min(limit, SPAN_BYTES))
        number = min(workers, MOST_PROCESSES, len(self._tasks))
        self._window = WAITING_TASKS * number
        for known in built_in_runtimes():
            _ = known.records  # loaded once, not by each fork for itself
        # Locks that other threads hold would stay locked in a fork, and outside Linux, system
        # libraries may not survive a fork. A fork starts in a tenth of the time.
        may_fork = os.path.isdir(_THREADS) and len(os.listdir(_THREADS)) == 1
        self._pool = ProcessPoolExecutor(
            number, multiprocessing.get_context("fork" if may_fork else "spawn"), _begin
        )
        self._submit(0)

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def extracts(self, file: SourceFile, inode: int, size: int) -> Iterator[Extract]:
        """Yield the extracts of a file from its beginning, if it is unchanged since reading.

        If they end early, the caller reads the rest."""
        task, position = self._places.pop(file.path, (len(self._tasks), 0))
        while self._has(task, position, file.path):
            extract = self._extract(task, position)
            if extract is None or extract.inode != inode or extract.size > size:
                return
            yield extract
            if extract.is_last:
                return
            position += 1
            if position >= len(self._tasks[task]):
                task, position = task + 1, 0

    def _has(self, task: int, position: int, path: str) -> bool:
        """Check if this is a span of the file at `path`, in a task that is not done."""
        spans = self._tasks[task] if task < len(self._tasks) else []
        return position < len(spans) and spans[position].path == path

    def _extract(self, task: int, position: int) -> Extract | None:
        """Return an extract, whose packed form nothing refers to any longer."""
        packed = self._result(task)[position]
        self._submit(task + 1 if position + 1 == len(self._tasks[task]) else task)
        return _unpacked(packed) if packed else None

    def _share_out(self, files: list[SourceFile], limit: int) -> None:
        """Make the tasks: large files are split into spans, and small files share a task."""
        task: list[Span] = []
        task_bytes = 0
        for file in files:
            for start in range(0, file.size, limit):
                stop = start + limit if start + limit < file.size else 0
                self._places.setdefault(file.path, (len(self._tasks), len(task)))
                task.append(Span(file.path, start, stop))
                task_bytes += min(limit, file.size - start)
                if task_bytes >= TASK_BYTES:
                    self._tasks.append(task)
                    task, task_bytes = [], 0
        if task:
            self._tasks.append(task)

    def _submit(self, following: int) -> None:
        """Submit the next tasks, from this one on, as many as may wait; forget earlier ones."""
        for number in [number for number in self._futures if number < following]:
            self._futures.pop(number).cancel()
            self._tasks[number] = []
        for number in range(following, min(following + self._window, len(self._tasks))):
            if self._pool and number not in self._futures:
                try:
                    self._futures[number] = self._pool.submit(
                        _packed_spans,
                        self._tasks[number],
                        self._home,
                        self._line_key,
                        self._forgotten,
                    )
                except (BrokenExecutor, OSError):  # killed, or the system has no room for processes
                    self._pool.shutdown(cancel_futures=True)
                    self._pool = None

    def _result(self, task: int) -> list[bytes]:
        self._submit(task)
        future = self._futures.get(task)
        try:
            return future.result() if future else [b""] * len(self._tasks[task])
        except BrokenExecutor:
            return [b""] * len(self._tasks[task])


def read_spans(
    spans: list[Span], home: str, line_key: bytes = b"", forgotten: ForgottenSessions | None = None
) -> list[Extract | None]:
    """Return an extract of each span; None if a file is unreadable or not a transcript."""
    return [_read_span(span, home, line_key, forgotten) for span in spans]


def _packed_spans(
    spans: list[Span], home: str, line_key: bytes, forgotten: ForgottenSessions | None
) -> list[bytes]:
    """Return `read_spans`, each packed, and b"" for None. Runs in the pool's processes."""
    extracts = read_spans(spans, home, line_key, forgotten)
    return [b"" if extract is None else _packed(extract) for extract in extracts]


def _packed(extract: Extract) -> bytes:
    """Return an extract as bytes, in a third of the time that pickling its named tuples takes."""
    entries: Any = [
        (*entry[:-2], entry.tools and [*map(_plain_tool, entry.tools)], entry.origin)
        for entry in extract.entries
    ]
    outcomes: Any = [(call, (*outcome,)) for call, outcome in extract.outcomes]
    return marshal.dumps((*extract._replace(entries=entries, outcomes=outcomes),))


def _plain_tool(tool: NewTool) -> tuple[Any, ...]:
    return (*tool[:-2], tool.ended and (*tool.ended,), tool.lines)


def _unpacked(packed: bytes) -> Extract:
    """Return the extract that `_packed` made bytes of."""
    plain: Any = Extract._make(marshal.loads(packed))
    entries = [
        _new(NewEntry, (*entry[:-2], tuple([*map(_tool_of, entry[-2])]), entry[-1]))
        if entry[-2]
        else _new(NewEntry, entry)
        for entry in plain.entries
    ]
    outcomes = [(call, ToolOutcome._make(outcome)) for call, outcome in plain.outcomes]
    return Extract._make(plain._replace(entries=entries, outcomes=outcomes))


def _tool_of(plain: tuple[Any, ...]) -> NewTool:
    ended = plain[-2]
    tool: NewTool = _new(NewTool, (*plain[:-2], ended and _new(ToolOutcome, ended), plain[-1]))
    return tool


def _read_span(
    span: Span, home: str, line_key: bytes, forgotten: ForgottenSessions | None
) -> Extract | None:
    try:
        with Opened(span.path) as descriptor:
            runtime = runtime_of(descriptor)
            if runtime is None:
                return None
            status = os.fstat(descriptor)
            end = status.st_size
            start = _line_start(descriptor, span.start)
            session_id = runtime.session_id_of(span.path)
            extractor = Extractor(
                runtime, descriptor, session_id, home, line_key, forgotten=forgotten
            )
            extractor.off_branch = _off_branch_in(status)
            answers = OutsideAnswers()
            extract = extractor.read(start, end, (span.stop or end) - start)
            answers.check(runtime.name)
            return extract
    except Exception:  # the process that stores it then reads the file itself and reports the error
        return None


def _off_branch_in(status: os.stat_result) -> dict[int, set[int]]:
    """Return what this process knows of the branches of a file, if it also read the last span of it.

    Each span would read the whole file for them."""
    file = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    if file not in _off_branch:
        _off_branch.clear()
    return _off_branch.setdefault(file, {})


def _line_start(descriptor: int, offset: int) -> int:
    if not offset:
        return 0
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(offset - 1)
        return offset - 1 + len(file.readline())


def _begin() -> None:
    """Prepare a process of the pool, which ends with its parent, however that ends."""
    gc.freeze()  # a fork must not use inherited objects, especially the open database
    gc.disable()  # nothing that is read has cycles, and looking for some takes 3 % of the time
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
