"""The log of a session's tool calls: one append-only file beside its state.

It has the collisions that were reported with calls, and an index of the other sessions' edits since
the last prompt. The index is a cache: a report is made from the transcripts, by the current rules.
The file has its own lock, so no call waits for a prompt. Reported collisions are appended under the
lock, lines of the index without it. Times in the future come from a clock that was ahead, and do
not count.
"""

# A line is JSON, in one of two forms:
#
#     ["", "edited discord /srv/app.py", 1790000000.5, true]
#     {"index": "prompt", "session": "discord", "cursor": {...}, "edited": {"/srv/app.py":
#     1790000000.5}, ...}
#
# The first has the agent, the key of a collision, a time up to which it needs no report, and if it
# was reported. The agent is '' for the session itself, else a sub-agent. It is PROMPTS for reports
# at the start of a sub-agent, which prompts need not repeat. The second replaces earlier lines of
# the same index and session.

from __future__ import annotations

from ...common.system.files import Closing, lock, open_own, os, read_at, read_whole
from ...common.system.json import LAST_SECOND, decode, encode
from ...common.text.paths import ANY
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from .actions import (
    EDIT,
    GIT,
    NAMED,
    REMOVE,
    FileAction,
    actions_elsewhere,
    actions_of,
    is_read_only,
    sub_agent_actions,
)
from .changes import OwnSession, changed_sessions
from .session_state import LOCK_WAIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...sessions.transcripts.entries import Session
    from ._new_entries import Budget, NewEntries

    ReportedLine = tuple[str, str, float, bool]

EDITED = "edited"
PROMPTS = " prompts"  # no agent has such a name
MEMORY = "memory "  # begins the key of a memory
# a longer file is cut to the later half of its reports and as much of the index
LOG_BYTES = 128 * 1024
MOST_PATHS = 1000  # of one session
MOST_NAMES = 200
SUFFIX = ".calls"
_INDEX = b'{"index": '


def edited_key(session: str, path: str) -> str:
    """Return the key of the fact that a session edited a file."""
    return f"{EDITED} {session} {path}"


def _named(name: str) -> str:
    """Return the key for commands that may have written any file of this name."""
    return f"{NAMED} {name}"


def _git_key(session: str, path: str) -> str:
    """Return the key for a session's git commands that affect a file."""
    return f"{GIT} {session} {path}"


def reported_with_calls(cursor_file: str, now: float) -> dict[str, float]:
    """Return, by key, the times up to which a prompt need not report something again.

    A call of the session itself, or the start of a sub-agent, has reported it."""
    lines = [
        line for line in _reported_lines(_read(_path(cursor_file))) if line[0] in ("", PROMPTS)
    ]
    return {key: time for _, key, time, is_reported in lines if is_reported and time <= now}


def forget_calls(cursor_file: str, names: set[str]) -> None:
    """Delete the log of a session with one of these names, and traces of it in other logs.

    From another log, the index (its cursors have titles) and the lines about these sessions (they
    have paths) are deleted. The sessions are also deleted from the notes of git's refs. Raises
    LockedError, OSError."""
    from .collisions.ref_notes import NOTES, forget_owners

    path = _path(cursor_file)
    forget_owners(path.rpartition("/cursors/")[0] + NOTES, names)
    content = _read(path)
    if content and path.rpartition("/")[2].removesuffix(SUFFIX) in names:
        os.unlink(path)
    elif content:
        log = CallLog(cursor_file)
        log.acquire()
        try:
            log.forget(names)
        finally:
            log.release()


class CallLog:
    """The log of one session.

    `settled` has, by key, the time up to which collisions of an `agent` need no report; times after
    `now` do not count."""

    def __init__(self, cursor_file: str, agent: str = "", now: float = LAST_SECOND) -> None:
        self.now = now
        self._path = _path(cursor_file)
        self._agent = agent
        self._descriptor: int | None = None
        self._content = _read(self._path)
        self.settled = self._settled()

    def acquire(self) -> None:
        """Take the lock, and read the lines that other calls have added.

        Raises LockedError, OSError."""
        if self._descriptor is None:
            self._descriptor = lock(self._path, LOCK_WAIT_SECONDS)
            self._content = read_at(self._descriptor, 0, os.fstat(self._descriptor).st_size)
            self.settled = self._settled()

    def add(self, lines: list[tuple[str, float, bool]], *, for_prompts: bool = False) -> None:
        """Append settled keys, each with whether it was reported.

        With `for_prompts`, the keys are settled for prompts too. Do nothing without the lock.
        Raises OSError."""
        agents = (self._agent, PROMPTS) if for_prompts else (self._agent,)
        values = [
            [agent, key, min(time, self.now), is_told]
            for agent in agents
            for key, time, is_told in lines
        ]
        if self._descriptor is not None and values:
            self._append(values)
            if os.fstat(self._descriptor).st_size > LOG_BYTES:
                self.shorten()

    def add_index(self, lines: list[dict[str, object]]) -> None:
        """Append lines of an index. Raises OSError."""
        if lines:
            self._append(lines)

    def index_lines(self, name: str) -> list[dict[str, object]]:
        """Return the last line of each session in the index `name`."""
        line_by_session: dict[bytes, bytes] = {}
        begin = b'%s"%s", ' % (_INDEX, name.encode())
        for line in self._content.split(b"\n"):
            if line.startswith(begin):
                line_by_session[line.partition(b', "cursor": ')[0]] = line
        lines = []
        for line in line_by_session.values():
            try:
                lines.append(decode(line.decode()))
            except ValueError:
                continue
        return [line for line in lines if isinstance(line, dict)]

    def shorten(self) -> None:
        """Keep the later half of the reports, and as much of the index.

        Needs the lock. Raises OSError."""
        kept: list[bytes] = []
        heads: set[bytes] = set()
        rooms = [LOG_BYTES // 2, LOG_BYTES // 4]
        for line in reversed(self._all_lines()):
            is_index = line.startswith(_INDEX)
            head = line.partition(b', "cursor": ')[0]
            if len(line) < rooms[is_index] and (not is_index or head not in heads):
                heads.add(head)
                kept.append(line)
                rooms[is_index] -= len(line) + 1
        self._replace(kept[::-1])

    def forget(self, names: set[str]) -> None:
        """Delete the index, and the reports about sessions with these names.

        Needs the lock. Raises OSError."""
        lines = [line for line in self._all_lines() if line]
        reports = [report for line in lines for report in _reported_lines(line)]
        kept = [encode(report).encode() for report in reports if not _is_about(report[1], names)]
        if len(kept) < len(lines):
            self._replace(kept)

    def _all_lines(self) -> list[bytes]:
        assert self._descriptor is not None
        return read_at(self._descriptor, 0, os.fstat(self._descriptor).st_size).split(b"\n")

    def _replace(self, lines: list[bytes]) -> None:
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, 0)
        os.write(self._descriptor, b"\n".join(lines))

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, values: Iterable[object]) -> None:
        # Each line begins with its line feed, because the text before it may be cut off.
        content = b"".join([b"\n" + encode(value).encode() for value in values])
        with Closing(open_own(self._path, os.O_WRONLY | os.O_APPEND)) as descriptor:
            os.write(descriptor, content)

    def _settled(self) -> dict[str, float]:
        times: dict[str, float] = {}
        for agent, key, time, _ in _reported_lines(self._content):
            if agent == self._agent and time <= self.now:
                times[key] = max(time, times.get(key, 0.0))
        return times


class ActionIndex:
    """An index of the other sessions' edits.

    For each session it has the cursor and, in `edited`, the time of its last edit by path. GIT has
    the time of its last git command, and `named NAME` the time of a command that may have written a
    file NAME. Actions of sub-agents count as their session's."""

    def __init__(self, log: CallLog, name: str, known: ReadCursors) -> None:
        """Load the index. `known` are the last prompt's cursors; activity before them is dropped.

        Without them, all is kept."""
        self._log = log
        self._name = name
        self.cursors = ReadCursors()
        # of the sessions with activity since the last prompt
        self.edited: dict[str, dict[str, float]] = {}
        self._offsets: dict[str, int] = {}
        for line in log.index_lines(name):
            try:
                self._load(line)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
        for key, cursor in known.items():
            if cursor.tail is not None:
                self._advance(key, cursor)

    def read_on(
        self,
        own_session: OwnSession,
        sessions: list[Session],
        now: float,
        oldest: float,
        budget: Budget | None = None,
    ) -> None:
        """Read the sessions' later activity, within the `budget`.

        Sessions without a cursor are read back to `oldest`. Raises OSError if the log cannot be
        written."""
        changed = changed_sessions(sessions, self.cursors, oldest, own_session)
        new_keys: set[str] = set()
        if changed:
            from ._new_entries import Budget, read_changed

            read, _ = read_changed(
                own_session, changed, self.cursors, now, oldest, len(changed), budget or Budget()
            )
            own_session.deadline.attempt_each(read, self._add_new, lambda new: new.session.path)
            new_keys = {new.session.key for new in read}
        transcripts: dict[str, list[str]] = {}
        for session in sessions:
            if session.key in self.edited:
                transcripts[session.key] = own_session.sub_agents_of(session)
                inputs = (own_session, session, transcripts[session.key], oldest)
                if own_session.deadline.attempt(session.path, self._read_sub_agents, *inputs):
                    new_keys.add(session.key)
        self._log.add_index(
            [self._line(key, transcripts.get(key, ())) for key in new_keys if key in self.edited]
        )

    def latest(self, session: str, path: str) -> dict[str, float]:
        """Return when a session last changed a file or ran git, by the log's keys; 0 for never.

        A change is an edit or a removal of the file, of a directory above it, or of its copy in
        another worktree of the repository. Only git commands that may change something count."""
        edits = self.edited.get(session, {})
        times, above, name = [0.0], path, path[path.rfind("/") :]
        times += [edits.get(_named(written), 0.0) for written in (name[1:], ANY)]
        while edits and above:
            times.append(edits.get(above, 0.0))
            above = above.rpartition("/")[0]
        copies = [at for at in edits if at.endswith(name) and at != path]
        if copies:
            from ...common.system.git import copied_to

            times += [edits[at] for at in copied_to(path, copies)]
        return {edited_key(session, path): max(times), _git_key(session, path): edits.get(GIT, 0.0)}

    def _advance(self, key: str, cursor: ReadCursor) -> None:
        """Replace a cursor by a prompt's newer one, and drop activity that the prompt has read."""
        known = self.cursors.get(key)
        if known and known.inode == cursor.inode and known.offset >= cursor.offset:
            return
        # The parts that a prompt left unread are older than the parts it has seen.
        behind = 0 if cursor.unread else cursor.seen
        later_edits = {
            path: time for path, time in self.edited.pop(key, {}).items() if time > behind
        }
        self.cursors.set(key, cursor)
        if later_edits:
            self.edited[key] = later_edits

    def _read_sub_agents(
        self, own_session: OwnSession, session: Session, transcripts: list[str], oldest: float
    ) -> bool:
        offsets = dict(self._offsets)
        self._add(
            session.key,
            sub_agent_actions(transcripts, own_session.runtime_of(session), offsets, oldest),
        )
        before, self._offsets = self._offsets, offsets
        return before != offsets

    def _add_new(self, new: NewEntries) -> None:
        root = new.session.local_root
        self._add(
            new.session.key,
            actions_elsewhere(new.entries, root) if root else actions_of(new.entries),
        )
        self.cursors.set(new.session.key, new.cursor)

    def _add(self, key: str, actions: list[FileAction]) -> None:
        edits = self.edited.setdefault(key, {})
        for action in actions:
            is_git = action.kind == GIT and bool(action.words) and not is_read_only(action.words)
            path = action.path if action.kind in (EDIT, REMOVE) else GIT if is_git else ""
            path = _named(action.path) if action.kind == NAMED else path
            if path:
                edits[path] = max(min(action.time, self._log.now), edits.pop(path, 0.0))

    def _line(self, key: str, transcripts: Iterable[str]) -> dict[str, object]:
        cursor = self.cursors.get(key)
        # by whether only a name is known
        times: dict[bool, list[tuple[str, float]]] = {False: [], True: []}
        for path, time in self.edited[key].items():
            times[path.startswith(_named(""))].append((path, time))
        return {
            "index": self._name,
            "session": key,
            "cursor": cursor.without_titles().dump() if cursor else {},
            "edited": dict(times[True][-MOST_NAMES:] + times[False][-MOST_PATHS:]),
            "sub_agents": {
                path: self._offsets[path] for path in transcripts if path in self._offsets
            },
        }

    def _load(self, line: dict[str, object]) -> None:
        cursor, edited, offsets = (
            ReadCursor.load(line["cursor"]),
            line["edited"],
            line["sub_agents"],
        )
        if cursor is not None:
            key = str(line["session"])
            times = [(str(path), float(time)) for path, time in edited.items()]  # type: ignore[attr-defined]
            self.edited[key] = {path: time for path, time in times if time <= self._log.now}
            self._offsets.update({str(path): int(at) for path, at in offsets.items()})  # type: ignore[attr-defined]
            self.cursors.set(key, cursor)


def _is_about(key: str, names: set[str]) -> bool:
    """Check if the key of a collision names one of these sessions, in any runtime."""
    session = key.partition(" ")[2].partition(" ")[0]
    return bool(names & {session, session.rpartition(":")[2]})


def _path(cursor_file: str) -> str:
    return cursor_file.removesuffix(".json") + SUFFIX


def _read(path: str) -> bytes:
    try:
        return read_whole(path)
    except OSError:
        return b""


def _reported_lines(content: bytes) -> list[ReportedLine]:
    """Return the lines that are as they were written."""
    lines: list[ReportedLine] = []
    for line in content.split(b"\n"):
        if line.startswith(b"["):
            try:
                agent, key, time, is_reported = decode(line.decode())
                lines.append((str(agent), str(key), float(time), is_reported is True))
            except (ValueError, TypeError):
                continue
    return lines
