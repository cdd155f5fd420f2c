"""Evidence of a suspected collision, from transcripts, files and git, with cached answers."""

from __future__ import annotations

from ....common.system.files import (
    Opened,
    is_regular,
    is_symlink,
    os,
    read_at,
    read_whole,
    status_at,
)
from ....common.system.git import (
    HeadMove,
    Worktree,
    branch_moves,
    commit_of,
    find_worktree,
    head_moves,
    ref_moves,
)
from ....common.system.json import decode_line, objects_in
from ....sessions.runtimes.records import RESULTS, SUB_AGENTS, CallResult
from ....sessions.transcripts.entries import FAILED, NOTHING
from ....sessions.transcripts.lines import last_line_end, lines_forward, windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ....common.system.git_objects import GitIndex, GitObjects
    from ....sessions.runtimes.base import Runtime
    from ....sessions.runtimes.records import Records
    from ....sessions.transcripts.edits import Edit
    from ..actions import FileAction

RESULT_BYTES = 64 * 1024 * 1024  # searched after a call for its result
# this much before a record is searched for its call, if the record was written after the call ended
CALL_BYTES = 2 * 1024 * 1024
# most results are shortly after their call, and the calls are close to each other
WINDOW_BYTES = 64 * 1024
NEAR_BYTES = 4 * 1024
LOG_SECONDS = 1.5  # the log of HEAD has whole seconds, and is written a moment after the move
_CLOCK_SECONDS = 0.05  # a file's time may be this much before the moment it was written
_EXACT_SECONDS = 1e-6  # a float of this many seconds is not more exact
LARGEST_FILE = 1024 * 1024  # compared with the written content


def grain_of(time: float) -> float:
    """Return by how many seconds a file may be newer than its time.

    Some file systems have whole seconds (HFS+, NFS and SMB of some servers), every other second
    (FAT) or hundredths (exFAT)."""
    if abs(time - round(time)) < _EXACT_SECONDS:
        return 1.0 + (round(time) % 2 == 0)
    return 0.01 if abs(time * 100 - round(time * 100)) < 100 * _EXACT_SECONDS else 0.0


class Evidence:
    """Answers for one prompt or call.

    `paths` and `runtimes` are the transcripts and runtimes by the key of their session, '' for this
    session. `worktree` is this session's."""

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
        self._ends: dict[tuple[str, str], _End] = {}
        self._begins: dict[tuple[str, str, int], float] = {}
        self._is_own_worktree: dict[str, bool] = {}
        self._moves: list[HeadMove] | None = None
        self._behind: float | None = None
        self._windows: dict[str, tuple[int, bytes]] = {}
        self._index: GitIndex | None = None
        self._objects: GitObjects | None = None
        self._found: dict[tuple[str, str], str | None] = {}

    def end(self, session: str, action: FileAction) -> tuple[float | None, bool]:
        """Return when the result of a call came (None if it has not), and if the call failed."""
        end = self._end(session, action)
        return end.time, end.has_failed

    def outcome(self, session: str, action: FileAction, *, is_last: bool) -> str:
        """Return the outcome of a call: NOTHING, FAILED or ''.

        NOTHING means that the call did not run, was a failed edit or read, or is the last call and
        has no result. FAILED means that a command ran and failed."""
        end = self._end(session, action)
        if (is_last and end.time is None) or not self.is_done(session, action):
            return NOTHING
        return FAILED if end.has_failed else ""

    def is_done(self, session: str, action: FileAction) -> bool:
        """Check if a call may have had its effect, which a command may have even if it failed."""
        end = self._end(session, action)
        return end.has_run if action.is_command else not end.has_failed

    def _end(self, session: str, action: FileAction) -> _End:
        key = session, action.call_id
        if key not in self._ends:
            self._ends[key] = self._find_end(session, action) if action.call_id else _End()
        return self._ends[key]

    def printed(self, session: str, action: FileAction) -> str:
        """Return the output of a call from its transcript; '' if unknown."""
        return str(self._end(session, action).content)

    def began(self, session: str, action: FileAction) -> float:
        """Return when a call was made, which is earlier than its record if that came at the end."""
        key = session, action.transcript, action.offset
        if key not in self._begins:
            path = action.transcript or self._paths.get(session, "")
            runtime = self._runtimes.get(session)
            began = (
                runtime.call_began(_lines_back(path, action.offset)) if runtime and path else None
            )
            self._begins[key] = action.time if began is None else min(began, action.time)
        return self._begins[key]

    def ended(self, session: str, action: FileAction) -> float:
        """Return when a call ended; if unknown, when it was made."""
        end, _ = self.end(session, action)
        return action.time if end is None else end

    def modified(self, path: str, *, is_moved: bool = False) -> float | None:
        """Return the earliest possible time of the file's last change.

        Return None if there is no file, 0 if it is not a regular file. A moved file keeps its
        mtime, but not its ctime."""
        times = self._modified(path, is_moved)
        return times[0] if times else None

    def modified_until(self, path: str, *, is_moved: bool = False) -> float:
        """Return the latest possible time of the file's last change; 0 if it is missing.

        It differs from `modified` only if the file system has whole seconds or a clock that is
        behind."""
        times = self._modified(path, is_moved)
        return times[1] if times else 0.0

    def _modified(self, path: str, is_moved: bool) -> tuple[float, float] | None:
        status = status_at(path, follow_symlinks=False)
        if status is None:
            return None
        if not is_regular(status) and not (is_moved and is_symlink(status)):
            return 0.0, 0.0
        return self._bounds(max(status.st_mtime, status.st_ctime) if is_moved else status.st_mtime)

    def _bounds(self, time: float) -> tuple[float, float]:
        """Return the earliest and latest moment at which a file can have got a time."""
        behind = self._seconds_behind()
        if behind:
            return time + behind - LOG_SECONDS, time + behind + LOG_SECONDS + grain_of(time)
        return time, time + grain_of(time)

    def is_checked_out(self, path: str, since: float, until: float) -> bool:
        """Check if a file was written between two times, and was then as in the index.

        Its index entry shows that even if the file has been edited since."""
        if self._worktree is None or not path.startswith(self._worktree.root + "/"):
            return False
        time = self._read_index().written(path)
        earliest, latest = self._bounds(time)
        return bool(time) and since <= latest and earliest <= until

    def is_older(self, path: str, since: float) -> bool:
        """Check if a file has not changed since a time, by the file system's clock."""
        status = status_at(path, follow_symlinks=False)
        changed = max(status.st_mtime, status.st_ctime) if status else since
        return changed + grain_of(changed) < since

    def _seconds_behind(self) -> float:
        """Return how far the file system's clock is behind, as far as that can be shown, else 0.

        The log of HEAD cannot have been written before the time in its last line."""
        if self._behind is None:
            moves = self.moves()
            status = (
                status_at(self._worktree.git_dir + "/logs/HEAD")
                if self._worktree and moves
                else None
            )
            behind = moves[-1].time - status.st_mtime - grain_of(status.st_mtime) if status else 0.0
            self._behind = behind if behind > LOG_SECONDS else 0.0
        return self._behind

    def may_have_gone(self, path: str, since: float) -> bool:
        """Check if a missing file may have been removed since a time.

        It may if its directory has changed since then."""
        directory = path.rpartition("/")[0]
        status = None
        while directory and status is None:
            status = status_at(directory)
            directory = directory.rpartition("/")[0]
        if status is None:
            return True
        behind = self._seconds_behind()
        return (
            status.st_mtime + grain_of(status.st_mtime) + behind + (LOG_SECONDS if behind else 0.0)
            >= since
        )

    def is_as_written(self, path: str, action: FileAction) -> bool:
        """Check if a file still has the content that this session's call wrote.

        Only a call that wrote all of the file can tell."""
        try:
            edits = self._edits_by(action)
            is_whole = len(edits) == 1 and not edits[0][0]
            return is_whole and read_whole(path, LARGEST_FILE) == edits[0][1].encode()
        except (OSError, UnicodeError):
            return False

    def has_edit(self, path: str, action: FileAction) -> bool:
        """Check if a file still has an edit of this session, perhaps among later ones.

        Only the text in the transcript can tell, so the edit of a command is never found."""
        try:
            edits = self._edits_by(action)
            content = read_whole(path, LARGEST_FILE).decode() if edits else ""
        except (OSError, UnicodeError):
            return False
        if not all([_is_applied(edit, content) for edit in edits]):
            return False
        # a file may be written anew with a part of its text
        is_part = any([not removed and added != content for removed, added in edits])
        return bool(edits) and not (is_part and self.is_as_committed(path) is not False)

    def _edits_by(self, action: FileAction) -> list[Edit]:
        """Return what a call of this session replaced in a file. Raises OSError."""
        written_in = action.transcript or self._paths[""]
        start, window = self._windows.get(written_in, (0, b""))
        end = window.find(b"\n", action.offset - start) if start <= action.offset else -1
        near = window[action.offset - start : end] if end >= 0 else b""
        records = objects_in(near or next(_lines_from(written_in, action.offset), b""))
        return self._runtimes[""].records.edits(records[0], action.call_id) if records else []

    def is_in_worktree(self, directory: str) -> bool:
        """Check if a directory is in this session's worktree; False without a worktree."""
        if directory not in self._is_own_worktree:
            own_worktree, worktree = self._worktree, find_worktree(directory, self._user_dir)
            self._is_own_worktree[directory] = (worktree and worktree.git_dir) == (
                own_worktree and own_worktree.git_dir
            )
        return self._is_own_worktree[directory]

    def staged(self, paths: list[str]) -> dict[str, str]:
        """Return the files whose index entries match the disk, with the names of their objects."""
        return self._read_index().as_they_are(paths) if self._worktree else {}

    def in_index(self, path: str) -> str | None:
        """Return the index's object name at an absolute path: '' if none, None if unknown."""
        if self._worktree is None or not path.startswith(self._worktree.root + "/"):
            return None
        return self._read_index().at(path)

    def _read_index(self) -> GitIndex:
        """Return the index of the worktree, which must be known."""
        if self._index is None:
            from ....common.system.git_objects import GitIndex

            assert self._worktree is not None
            self._index = GitIndex(self._worktree)
        return self._index

    def is_tracked(self, path: str) -> bool:
        """Check if git may track a file, or one below a directory, in the index or HEAD."""
        return bool(self._object(self._head_commit(), path) != "" or self.in_index(path) != "")

    def was_committed(self, path: str, time: float) -> bool:
        """Check if the commit that was checked out at a time has a file; False if unknown."""
        moves = self.moves()
        before = [move.after for move in moves if move.time < int(time)]
        first = moves[0].before if moves else self._head_commit()
        return bool(self._object(before[-1] if before else first, path))

    def is_staged(self, path: str) -> bool:
        """Check if the index may have other content of a file than the current commit."""
        committed, staged = self._object(self._head_commit(), path), self.in_index(path)
        return committed is None or staged is None or committed != staged

    def moves(self) -> list[HeadMove]:
        """Return the moves of HEAD of this worktree at the end of its log."""
        if self._moves is None:
            self._moves = head_moves(self._worktree.git_dir, 0.0) if self._worktree else []
        return self._moves

    def moves_since(self, time: float, began: float | None = None) -> list[HeadMove]:
        """Return the moves of HEAD that may have been made since a time.

        The log has whole seconds, so moves of that second count too, unless they can be shown to
        have been made before `began`, by default the same time."""
        began = time if began is None else began
        return [
            move
            for move in self.moves()
            if move.time >= int(time) and (move.time >= began or self._made_until(move) >= began)
        ]

    def _made_until(self, move: HeadMove) -> float:
        """Return the latest time at which a move can have been made; infinite if unknown.

        The log was last written by its last move, and the object of a new commit by the move to it.
        """
        if self._worktree is None:
            return float("inf")
        names = [self._worktree.git_dir + "/logs/HEAD"] if move is self.moves()[-1] else []
        if move.verb == "commit":
            names.append(f"{self._worktree.common_dir}/objects/{move.after[:2]}/{move.after[2:]}")
        statuses = [status_at(name) for name in names]
        written = [
            status.st_mtime + grain_of(status.st_mtime) + _CLOCK_SECONDS
            for status in statuses
            if status is not None and status.st_mtime >= move.time
        ]
        return min(written, default=float("inf"))

    def moves_elsewhere(self, branch: str, since: float) -> list[HeadMove]:
        """Return the moves of the current branch since a time that are not in the log of HEAD.

        Another worktree made them, or a command that moves only branches."""
        here = {(move.before, move.after) for move in self.moves() if move.branches is None}
        moves = branch_moves(self._worktree, branch, since) if self._worktree and branch else []
        return [
            move
            for move in moves
            if move.before != move.after and (move.before, move.after) not in here
        ]

    def head_written(self) -> float:
        """Return when HEAD was last pointed to another branch or commit; 0 if unknown."""
        status = status_at(self._worktree.git_dir + "/HEAD") if self._worktree else None
        return status.st_mtime if status else 0.0

    def is_in_repository(self, directory: str) -> bool:
        """Check if a directory is in a worktree of this session's repository."""
        worktree = find_worktree(directory, self._user_dir)
        return bool(
            worktree and self._worktree and worktree.common_dir == self._worktree.common_dir
        )

    def has_changed(self, move: HeadMove, path: str) -> bool | None:
        """Check if the commit that HEAD moved to changed a file; None if unknown."""
        before = self._object(move.before, path) if move.before.strip("0") else ""
        after = self._object(move.after, path)
        return None if before is None or after is None else before != after

    def is_stashed(self, path: str, since: float, until: float) -> bool:
        """Check if a stash from a time has a file that differs from the commit below it.

        A third parent of a stash has untracked files. False if git cannot tell."""
        from ....common.system.git_refs import STASH_REF

        common_dir = self._worktree.common_dir if self._worktree else ""
        for stash in ref_moves(common_dir, STASH_REF, since) if common_dir else ():
            kept, before, untracked = [
                self._object(stash.after + parent, path) for parent in ("", "^", "^3")
            ]
            is_changed = None not in (kept, before) and kept != before
            if stash.time <= until and (is_changed or untracked):
                return True
        return False

    def object_after(self, move: HeadMove, path: str) -> str | None:
        """Return the name of a file's object in the commit that HEAD moved to; None if unknown."""
        return self._object(move.after, path)

    def is_as_committed(self, path: str) -> bool | None:
        """Check if a file is as in the current commit; None if git cannot tell."""
        committed = self._object(self._head_commit(), path)
        if committed is None:
            return None
        status = status_at(path, follow_symlinks=False)
        if status is None or not committed:
            return status is None and not committed
        if self.staged([path]).get(path) == committed:
            return True
        try:
            content = read_whole(path, LARGEST_FILE)
        except OSError:
            return False
        from ....common.system.git_objects import blob_name

        return blob_name(content, len(committed)) == committed

    def lacks_replacement(self, path: str, command: str) -> bool:
        """Check if a command line only substitutes, and its replacement is not in the file."""
        if "sed" not in command and "perl" not in command:
            return False
        from ....common.text.shell_written import has_replaced_nothing

        try:
            return has_replaced_nothing(command, read_whole(path, LARGEST_FILE).decode())
        except (OSError, UnicodeError):
            return False

    def _head_commit(self) -> str:
        """Return the name of the commit that is checked out; '' if unknown."""
        if self._worktree is None:
            return ""
        moves = self.moves()
        return commit_of(self._worktree) or (moves[-1].after if moves else "")

    def _object(self, commit: str, path: str) -> str | None:
        """Return the name of the object that a commit has at an absolute path."""
        key = commit, path
        if key not in self._found:
            if not commit or not self._worktree or not path.startswith(self._worktree.root + "/"):
                return None
            if self._objects is None:
                from ....common.system.git_objects import GitObjects

                self._objects = GitObjects(self._worktree.common_dir)
            self._found[key] = self._objects.at(commit, path[len(self._worktree.root) + 1 :])
        return self._found[key]

    def _find_end(self, session: str, action: FileAction) -> _End:
        path = action.transcript or self._paths.get(session, "")
        # A call that wrote several files may have a result for each; our ids are numbered.
        wanted = action.call_id.partition(":")[0].encode("utf-8", "replace")
        if session not in self._runtimes or not wanted:
            return _End()
        records = self._runtimes[session].records
        kinds = RESULTS | SUB_AGENTS if action.transcript else RESULTS
        of_call = None  # the result of a call with several parts, if they have none each
        for line in self._lines_from(path, action.offset, wanted):
            if not records.prefilter(line, RESULTS):
                continue
            # decodes a third of a usual line
            results = None if action.transcript else records.results_in(line, decode_line)
            if results is not None:
                if result := CallResult.of_call(action.call_id, results):
                    return _End(result, records, line)
                continue
            for record in objects_in(line):
                events = records.events(record, 0, kinds)
                ends = [event for event in events if isinstance(event, CallResult)]
                if result := CallResult.of_call(action.call_id, ends):
                    result.time = result.time or records.time(record)
                    if result.call_id == action.call_id:
                        return _End(result)
                    of_call = of_call or result
        return _End(of_call)

    def _lines_from(self, path: str, offset: int, wanted: bytes) -> Iterator[bytes]:
        """Yield the lines from `offset` on that contain `wanted`.

        Lines close together are read in one window."""
        start, window = self._windows.get(path, (0, b""))
        end = start + len(window) - (NEAR_BYTES if len(window) == WINDOW_BYTES else 0)
        if not start <= offset < end:
            start, window = offset, b""
            try:
                with Opened(path) as descriptor:
                    window = read_at(descriptor, offset, offset + WINDOW_BYTES)
            except OSError:
                pass
            self._windows[path] = start, window
        at = window.find(wanted, offset - start)
        end = window.find(b"\n", at) if at >= 0 else -1
        while end >= 0:
            yield window[window.rfind(b"\n", 0, at) + 1 : end]
            at = window.find(wanted, end + 1)
            end = window.find(b"\n", at) if at >= 0 else -1
        if len(window) == WINDOW_BYTES:  # there is more
            yield from _lines_from(path, offset, wanted)


class _End:
    """The end of a call: if it failed, if it ran, and the `content` of its `result`.

    Without a result, the call counts as one that has run. If the result does not say when it came,
    the record in the `line` does, which is decoded only then."""

    def __init__(
        self,
        result: CallResult | None = None,
        records: Records | None = None,
        line: bytes = b"",
    ) -> None:
        self.has_failed = result is not None and result.has_failed
        self.has_run = result is None or result.has_run
        self.content = "" if result is None else result.content
        self._time = result.time if result is not None else None
        self._records = records
        self._line = line

    @property
    def time(self) -> float | None:
        """The time of the result, in seconds since 1970; None if it has not come."""
        if not self._time and self._line and self._records is not None:
            times = [self._records.time(record) for record in objects_in(self._line)]
            self._time, self._line = times[0] if times else None, b""
        return self._time


def _is_applied(edit: Edit, content: str) -> bool:
    """Check if a text has what an edit added, and not what it removed."""
    removed, added = edit
    return added in content and (removed in added or removed not in content)


def _lines_from(path: str, offset: int, wanted: bytes = b"") -> Iterator[bytes]:
    """Yield a transcript's complete lines from `offset` on with `wanted`, within RESULT_BYTES."""
    try:
        with Opened(path) as descriptor:
            size = min(os.fstat(descriptor).st_size, offset + RESULT_BYTES)
            end = last_line_end(descriptor, offset, size, RESULT_BYTES)
            for _, line in lines_forward(descriptor, offset, end or offset):
                if wanted in line:
                    yield line[:-1]
    except OSError:
        return


def _lines_back(path: str, offset: int) -> Iterator[bytes]:
    """Yield the line at `offset` and the lines before it, last first, within CALL_BYTES."""
    yield next(_lines_from(path, offset), b"")
    try:
        with Opened(path) as descriptor:
            for lines in windows_backward(descriptor, 0, offset, CALL_BYTES):
                yield from [line for _, line in reversed(lines)]
    except OSError:
        return
