"""Which sessions wrote something since they were read last, and whether HEAD was moved: by what `stat` says."""

from __future__ import annotations

from ..system.deadline import Deadline
from ..system.files import is_regular, os, path_stamp, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import stat_result

    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..settings.homes import Home
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session

    Changed = tuple[Session, stat_result]


class Observation:
    """The `sessions` that the session `own` is told of, and `statuses` with what `stat` says of those that are there. A
    session that a rule hides by its name or id is left out: it is not even looked at."""

    __slots__ = ("_deadline", "sessions", "statuses")

    def __init__(self, own: OwnSession, sessions: Iterable[Session], settings: Settings) -> None:
        self.sessions = list(sessions)
        if settings.has_rules:
            self.sessions = [
                one for one in self.sessions if not settings.rule(one.name or one.key, own.id_of(one)).ignore
            ]
        self._deadline = own.deadline
        self.statuses = _statuses(self.sessions, own.deadline)

    def changed(self, cursors: Mapping[str, Cursor], oldest: float) -> list[Changed]:
        """As `changed_sessions`."""
        return _changed(self.statuses, cursors, oldest, self._deadline)


def changed_sessions(
    sessions: Iterable[Session], cursors: Mapping[str, Cursor], oldest: float, deadline: Deadline
) -> list[Changed]:
    """Return the sessions whose transcripts may hold something new, the last written first. A session without a cursor
    is left out if it wrote nothing since `oldest`, in seconds since the epoch."""
    return _changed(_statuses(sessions, deadline), cursors, oldest, deadline)


def _statuses(sessions: Iterable[Session], deadline: Deadline) -> list[Changed]:
    found: list[Changed] = []

    def take(session: Session) -> None:
        try:
            found.append((session, os.stat(session.path, follow_symlinks=False)))
        except FileNotFoundError:
            pass

    deadline.attempt_each(sessions, take, path_of)
    return found


def path_of(session: Session) -> str:
    """Return the path of its transcript, by which the log names a session."""
    return session.path


def _changed(
    statuses: list[Changed], cursors: Mapping[str, Cursor], oldest: float, deadline: Deadline
) -> list[Changed]:
    found = []
    for session, status in statuses:
        cursor = cursors.get(session.key)
        if _is_unchanged(cursor, status) if cursor else status.st_mtime < oldest:
            continue
        if is_regular(status):
            found.append((session, status))
        else:
            deadline.notes.append(f"{session.path}: not a regular file")
    if len(found) > 1:
        found.sort(key=lambda pair: -pair[1].st_mtime_ns)
    return found


def _is_unchanged(cursor: Cursor, status: stat_result) -> bool:
    """Check if the cursor's file was read to its end, and `status` alone tells that nothing was written since."""
    return "unread" not in cursor and (cursor.get("inode"), cursor.get("size"), cursor.get("mtime")) == stamp_of(status)


def head_stamp(git_dir: str) -> list[int]:
    """What stays the same as long as HEAD of a worktree is not moved."""
    return [*path_stamp(git_dir + "/HEAD"), *path_stamp(git_dir + "/logs/HEAD")]


def is_head_known(own: Cursor | None, directory: str) -> bool:
    """Whether HEAD is where it was when the session's `own` cursor was made."""
    if own is None or own.get("directory") != directory:
        return False
    git_dir = own.get("git", "")
    return not git_dir or head_stamp(git_dir) == own.get("stamp")


class OwnSession:
    """The session at hand: its key, its runtime, the file of its cursors, its transcript and the directory that it was
    started in ('' where that does not matter), and its home, if that is known.

    `keeps_transcript` says whether there is a transcript as soon as a prompt was answered, None where that is not
    known. `prompt_id` is the prompt's that is to be told something: a prompt in the middle of a turn has that of the
    turn. `process` names the runtime's process that the session runs in. Both are '' where they are not known.
    `collision_file` is the file of collisions to be read, '' for the one that counts. `known_sub_agents` are as those
    of a Session. `deadline` is that of the hook that asks.
    """

    __slots__ = (
        "collision_file",
        "cursor_file",
        "deadline",
        "directory",
        "home",
        "keeps_transcript",
        "key",
        "known_sub_agents",
        "path",
        "process",
        "prompt_id",
        "runtime",
    )

    def __init__(
        self, key: str, runtime: Runtime, cursor_file: str, path: str = "", directory: str = "",
        home: Home | None = None, *, keeps_transcript: bool | None = None, prompt_id: str = "", process: str = "",
        known_sub_agents: Sequence[str] = (), deadline: Deadline | None = None,
    ) -> None:  # fmt: skip
        self.key = key
        self.runtime = runtime
        self.cursor_file = cursor_file
        self.path = path
        self.directory = directory if path else ""
        self.home = home
        self.keeps_transcript = keeps_transcript
        self.prompt_id = prompt_id
        self.process = process
        self.known_sub_agents = known_sub_agents
        self.collision_file = ""
        self.deadline = deadline or Deadline()

    def runtime_of(self, session: Session) -> Runtime:
        """The runtime that another session runs in: this one's, where that names none."""
        return session.runtime or self.runtime

    def id_of(self, session: Session) -> str:
        """The id of another session."""
        return self.runtime_of(session).session_id_of(session.path)

    def sub_agents(self) -> list[str]:
        """The transcripts in which stands what the sub-agents of this session did."""
        return [*self.runtime.sub_agents(self.path), *self.known_sub_agents]

    def sub_agents_of(self, session: Session) -> list[str]:
        """The same of another session."""
        return [*self.runtime_of(session).sub_agents(session.path), *session.known_sub_agents]

    @property
    def user_dir(self) -> str:
        """The home directory of its person; '' where that is not known."""
        return self.home.user_dir if self.home else ""
