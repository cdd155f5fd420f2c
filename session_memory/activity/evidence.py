"""What transcripts, files and git say where a collision is suspected: asked only then, and each question once."""

from __future__ import annotations

from ..runtimes.records import RESULTS, SUB_AGENTS, CallResult
from ..system.files import is_regular, open_regular, os, read_at, read_whole, status_at
from ..system.git import Worktree, find_worktree, head_moves, staged_as_they_are
from ..system.json import objects_in
from ..transcripts.lines import last_line_end, lines_forward, windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..runtimes import Runtime
    from ..system.git import HeadMove
    from ..system.git_objects import GitObjects
    from .touches import Touch

RESULT_BYTES = 64 * 1024 * 1024  # behind a call, in which its result is looked for
CALL_BYTES = 2 * 1024 * 1024  # before a record that was written when its call was over, in which that is looked for
WINDOW_BYTES = 64 * 1024  # most results stand close behind their call, and the calls close to each other
NEAR_BYTES = 4 * 1024
LARGEST_FILE = 1024 * 1024  # that is compared with what was written


class TranscriptEvidence:
    """The answers for a prompt. `paths` are the transcripts by the key of their session, that of the session at hand by
    ''; `runtimes` those by whose rules they are read; `worktree` is its own."""

    def __init__(
        self,
        runtimes: Mapping[str, Runtime],
        paths: Mapping[str, str],
        worktree: Worktree | None,
        user_dir: str,
    ) -> None:
        self._runtimes = runtimes
        self._paths = paths
        self._worktree = worktree
        self._user_dir = user_dir
        self._ends: dict[tuple[str, str], tuple[float | None, bool]] = {}
        self._begins: dict[tuple[str, str, int], float] = {}
        self._is_own_worktree: dict[str, bool] = {}
        self._moves: list[HeadMove] | None = None
        self._windows: dict[str, tuple[int, bytes]] = {}
        self._objects: GitObjects | None = None
        self._found: dict[tuple[str, str], str | None] = {}

    def end(self, session: str, touch: Touch) -> tuple[float | None, bool]:
        """When the result of a call came, None where it has not, and whether the call failed."""
        key = session, touch.call_id
        if key not in self._ends:
            self._ends[key] = self._find_end(session, touch) if touch.call_id else (None, False)
        return self._ends[key]

    def began(self, session: str, touch: Touch) -> float:
        """Return when a call was made: its record may have been written only when it was over."""
        key = session, touch.transcript, touch.offset
        if key not in self._begins:
            path = touch.transcript or self._paths.get(session, "")
            runtime = self._runtimes.get(session)
            began = runtime.call_began(_lines_back(path, touch.offset)) if runtime and path else None
            self._begins[key] = touch.time if began is None else min(began, touch.time)
        return self._begins[key]

    def modified(self, path: str, *, is_moved: bool = False) -> float | None:
        """Return when the file was last modified; None where there is none, 0 for what is no file. One that was moved
        there keeps that time, but not the one of the last change of its state."""
        status = status_at(path, follow_symlinks=False)
        if status is None:
            return None
        if not is_regular(status):
            return 0.0
        return max(status.st_mtime, status.st_ctime) if is_moved else status.st_mtime

    def may_have_gone(self, path: str, since: float) -> bool:
        """Check that a file that is not there may have been removed since a time: something was, from the directory."""
        directory = path.rpartition("/")[0]
        status = None
        while directory and status is None:
            status = status_at(directory)
            directory = directory.rpartition("/")[0]
        return status is None or status.st_mtime >= since

    def is_as_written(self, path: str, touch: Touch) -> bool:
        """Whether a file of this session has the content that its own call gave it, where that wrote all of it."""
        written_in = touch.transcript or self._paths[""]
        try:
            start, window = self._windows.get(written_in, (0, b""))
            end = window.find(b"\n", touch.offset - start) if start <= touch.offset else -1
            near = window[touch.offset - start : end] if end >= 0 else b""
            line = near or next(_lines_from(written_in, touch.offset), b"")
            found = objects_in(line)
            edits = self._runtimes[""].records.edits(found[0], touch.call_id) if found else []
            is_whole = len(edits) == 1 and not edits[0][0]
            return is_whole and read_whole(path, LARGEST_FILE) == edits[0][1].encode()
        except (OSError, UnicodeError):
            return False

    def is_in_worktree(self, directory: str) -> bool:
        """Check if a directory is in the worktree of this session, or, if that is in none, in none either."""
        if directory not in self._is_own_worktree:
            own, found = self._worktree, find_worktree(directory, self._user_dir)
            self._is_own_worktree[directory] = (found and found.git_dir) == (own and own.git_dir)
        return self._is_own_worktree[directory]

    def staged(self, paths: list[str]) -> dict[str, str]:
        """Those of the files that the index has as they are, with the names of their objects."""
        return staged_as_they_are(self._worktree, paths) if self._worktree else {}

    def moves(self) -> list[HeadMove]:
        """How HEAD of this worktree moved, as far as the end of its log tells."""
        if self._moves is None:
            self._moves = head_moves(self._worktree.git_dir, 0.0) if self._worktree else []
        return self._moves

    def has_changed(self, move: HeadMove, path: str) -> bool | None:
        """Whether a file is another one in the commit that HEAD moved to; None where that cannot be told."""
        before = self._object(move.before, path) if move.before.strip("0") else ""
        after = self._object(move.after, path)
        return None if before is None or after is None else before != after

    def object_after(self, move: HeadMove, path: str) -> str | None:
        """The name of the object that a file is in the commit that HEAD moved to; None where that cannot be told."""
        return self._object(move.after, path)

    def _object(self, commit: str, path: str) -> str | None:
        """What a commit has at an absolute path."""
        key = commit, path
        if key not in self._found:
            if not self._worktree or not path.startswith(self._worktree.root + "/"):
                return None
            if self._objects is None:
                from ..system.git_objects import GitObjects

                self._objects = GitObjects(self._worktree.common_dir)
            self._found[key] = self._objects.at(commit, path[len(self._worktree.root) + 1 :])
        return self._found[key]

    def _find_end(self, session: str, touch: Touch) -> tuple[float | None, bool]:
        path = touch.transcript or self._paths.get(session, "")
        # What a call wrote in several files has a result for each, whose ids end in a number of ours.
        wanted = touch.call_id.partition(":")[0].encode("utf-8", "replace")
        if session not in self._runtimes or not wanted:
            return None, False
        records, whose = self._runtimes[session].records, SUB_AGENTS if touch.transcript else 0
        for line in self._lines_from(path, touch.offset, wanted):
            if records.prefilter(line, RESULTS):
                for record in objects_in(line):
                    for event in records.events(record, 0, RESULTS | whose):
                        if isinstance(event, CallResult) and event.call_id == touch.call_id:
                            return records.time(record), event.has_failed
        return None, False

    def _lines_from(self, path: str, offset: int, wanted: bytes) -> Iterator[bytes]:
        """The lines from the one at `offset` on that hold `wanted`: those near it out of a window that is read once."""
        start, window = self._windows.get(path, (0, b""))
        end = start + len(window) - (NEAR_BYTES if len(window) == WINDOW_BYTES else 0)
        if not start <= offset < end:
            start, window = self._windows[path] = offset, _read_window(path, offset)
        at = window.find(wanted, offset - start)
        end = window.find(b"\n", at) if at >= 0 else -1
        while end >= 0:
            yield window[window.rfind(b"\n", 0, at) + 1 : end]
            at = window.find(wanted, end + 1)
            end = window.find(b"\n", at) if at >= 0 else -1
        if len(window) == WINDOW_BYTES:  # there is more
            yield from _lines_from(path, offset, wanted)


def _read_window(path: str, offset: int) -> bytes:
    try:
        descriptor = open_regular(path)
    except OSError:
        return b""
    try:
        return read_at(descriptor, offset, offset + WINDOW_BYTES)
    finally:
        os.close(descriptor)


def _lines_from(path: str, offset: int, wanted: bytes = b"") -> Iterator[bytes]:
    """Yield the complete lines of a transcript from `offset` on that hold `wanted`, as far as RESULT_BYTES reach."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return
    try:
        end = last_line_end(descriptor, offset, min(os.fstat(descriptor).st_size, offset + RESULT_BYTES), RESULT_BYTES)
        for _, line in lines_forward(descriptor, offset, end or offset):
            if wanted in line:
                yield line[:-1]
    finally:
        os.close(descriptor)


def _lines_back(path: str, offset: int) -> Iterator[bytes]:
    """Yield the line at `offset` and those before it, the last first, as far as CALL_BYTES reach."""
    yield next(_lines_from(path, offset), b"")
    try:
        descriptor = open_regular(path)
    except OSError:
        return
    try:
        for lines in windows_backward(descriptor, 0, offset, CALL_BYTES):
            for _, line in reversed(lines):
                yield line
    finally:
        os.close(descriptor)
