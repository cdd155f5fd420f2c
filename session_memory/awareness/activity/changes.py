"""Finds changes: the sessions that wrote something since they were last read, and moves of HEAD.

A session's sub-agents count too. Only `stat` is called; no transcript is read.

STANDSTILL is a fingerprint of the last prompt that had nothing to report. It is the first key of
the state file, so it is read without decoding the cursors. Without it, a prompt with 1,000 other
sessions would take 1.64 x a bare start instead of 1.29 x, and with 50 sessions 0.06 x more, because
it would decode and lock the cursors and prepare an update.
"""

from __future__ import annotations

import time

from ...common.system.deadline import Deadline
from ...common.system.files import (
    UNFINISHED,
    Opened,
    is_regular,
    os,
    path_stamp,
    read_at,
    stamp_of,
    unfinished,
)
from ...common.system.json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import stat_result

    from ...sessions.runtimes.base import Runtime
    from ...sessions.settings.compiled import Settings
    from ...sessions.settings.homes import Home
    from ...sessions.transcripts.entries import Session
    from ...sessions.transcripts.old_sessions import OldSessions
    from ...sessions.transcripts.read_cursor import ReadCursors
    from .session_state import OwnState

    Changed = tuple[Session, stat_result]

STANDSTILL = " standstill"
# older activity is reported only at the first prompt, and after a pause of this length
OLD_SECONDS = 6 * 3600
HEAD_NUMBERS = 9  # of a stamp of HEAD; the later numbers are about shared refs
RUNNING_SECONDS = 3600  # a session that waits for its sub-agents writes nothing itself
MOST_RUNNING = 20  # sessions whose sub-agents are checked
PROMPT_CHARACTERS = 4000  # that are searched for names
_STANDSTILL_BYTES = 8 * 1024
_STANDSTILL_START, _STANDSTILL_END = b'{" standstill": ', b'"], "'
_HEAD_BYTES = 4096
_REFERENCE = b"ref: "
_LARGE_PRIME = (1 << 61) - 1


class Observation:
    """The other `sessions`, as seen by the session `own` with the `settings` of its home.

    Without a home, only the rules for these sessions apply. `statuses` has the `stat` of existing
    transcripts. A session that a rule hides by its name or id is left out, and its file is not even
    checked. Old sessions are added once they matter."""

    def __init__(
        self, own_session: OwnSession, sessions: Iterable[Session], settings: Settings
    ) -> None:
        self.own = own_session
        self.settings = settings
        self.sessions = self._visible(sessions)
        self.statuses = _statuses(self.sessions, own_session)
        # the old sessions are as they were when their list was made
        self._listed = len(self.statuses)

    def _visible(self, sessions: Iterable[Session]) -> list[Session]:
        if not self.settings.has_rules:
            return list(sessions)
        rule, id_of = self.settings.rule, self.own.id_of
        return [
            session
            for session in sessions
            if not rule(session.name or session.key, id_of(session)).ignore
        ]

    @property
    def listed(self) -> list[Changed]:
        """The `statuses` without old sessions."""
        return self.statuses[: self._listed]

    def changed(self, cursors: ReadCursors, oldest: float) -> list[Changed]:
        """Return what `changed_sessions` does."""
        since = min(oldest, time.time() - self.settings.first_sight_seconds)
        old = self._visible(self.own.relevant_old(self.sessions, cursors, since))
        self.sessions += old
        self.statuses += _statuses(old, self.own)
        return _changed(self.statuses, cursors, oldest, self.own.deadline)


def changed_sessions(
    sessions: Iterable[Session], cursors: ReadCursors, oldest: float, own_session: OwnSession
) -> list[Changed]:
    """Return the sessions with possible news, the last written first.

    A session without a cursor is left out if it wrote nothing since `oldest`, in seconds since
    1970."""
    return _changed(_statuses(sessions, own_session), cursors, oldest, own_session.deadline)


def seen_until(own_state: OwnState | None, now: float) -> float:
    """Return the time before which everything counts as seen.

    Activity older than OLD_SECONDS at the last prompt counts as seen. A last prompt in the future,
    by a clock that was ahead, is ignored."""
    return (
        own_state.asked - OLD_SECONDS
        if own_state is not None and 0 < own_state.asked <= now
        else 0.0
    )


def _statuses(sessions: Iterable[Session], own_session: OwnSession) -> list[Changed]:
    """Return the sessions with a transcript.

    The bytes of sub-agents' transcripts are noted in the most recently active ones."""
    statuses: list[Changed] = []

    def take(session: Session) -> None:
        try:
            status = os.stat(session.path, follow_symlinks=False)
        except FileNotFoundError:
            return
        if UNFINISHED and (end := unfinished(session.path)):
            status = end.finished_status(status)
        statuses.append((session, status))

    def add_sub_agents(changed: Changed) -> None:
        session, _ = changed
        transcripts = [
            *own_session.runtime_of(session).sub_agents_beside(session.path),
            *session.known_sub_agents,
        ]
        session.sub_agent_bytes = sum([path_stamp(path)[1] for path in transcripts])

    own_session.deadline.attempt_each(sessions, take, lambda session: session.path)
    since = time.time() - RUNNING_SECONDS
    recent = (
        [changed for changed in statuses if changed[1].st_mtime >= since]
        if own_session.directory
        else []
    )
    if len(recent) > MOST_RUNNING:
        recent = sorted(recent, key=lambda changed: -changed[1].st_mtime)[:MOST_RUNNING]
    own_session.deadline.attempt_each(recent, add_sub_agents, lambda changed: changed[0].path)
    return statuses


def _changed(
    statuses: list[Changed], cursors: ReadCursors, oldest: float, deadline: Deadline
) -> list[Changed]:
    changed = []
    for session, status in statuses:
        if cursors.is_unchanged(session.key, stamp_of(status), session.sub_agent_bytes):
            continue
        if status.st_mtime < oldest and cursors.get(session.key) is None:
            continue
        if is_regular(status):
            changed.append((session, status))
        else:
            deadline.notes.append(f"{session.path}: not a regular file")
    if len(changed) > 1:
        changed.sort(key=lambda pair: -pair[1].st_mtime_ns)
    return changed


def head_stamp(git_dir: str) -> list[int]:
    """Return a stamp that changes when HEAD of a worktree, or its branch, moves.

    Its numbers from HEAD_NUMBERS on change with the refs that the worktrees share."""
    return [
        *path_stamp(git_dir + "/HEAD"),
        *path_stamp(git_dir + "/logs/HEAD"),
        *path_stamp(_branch_file(git_dir)),
        *shared_stamp(shared_dir(git_dir)),
    ]


def shared_stamp(common_dir: str) -> list[int]:
    """Return a stamp that changes when a stash, branch or worktree is added or removed.

    If a branch has a slash in its name, its update may leave the stamp unchanged."""
    return [
        *path_stamp(common_dir + "/logs/refs/stash"),
        *path_stamp(common_dir + "/refs/heads"),
        *path_stamp(common_dir + "/packed-refs"),
        *path_stamp(common_dir + "/worktrees"),
    ]


def shared_dir(git_dir: str) -> str:
    """Return the directory that a worktree's `git_dir` shares with other worktrees.

    Only the path is used."""
    common_dir, _, worktree = git_dir.rpartition("/worktrees/")
    return common_dir if common_dir and "/" not in worktree else git_dir


def _branch_file(git_dir: str) -> str:
    """Return the file with the commit of the current branch; '' if HEAD names none."""
    try:
        with Opened(git_dir + "/HEAD") as descriptor:
            head = read_at(descriptor, 0, _HEAD_BYTES).strip()
    except OSError:
        return ""
    if not head.startswith(_REFERENCE):
        return ""
    return f"{shared_dir(git_dir)}/{head[len(_REFERENCE) :].decode('utf-8', 'surrogateescape')}"


def inbox_stamp(own_session: OwnSession) -> list[int]:
    """Return a stamp that changes when upkeep stores other notes in the inbox.

    Return [] without an inbox."""
    stamp = (
        path_stamp(own_session.home.inbox_file) if own_session.start and own_session.home else ()
    )
    return [*stamp] if any(stamp) else []


def is_head_known(own_state: OwnState | None, directory: str) -> bool:
    """Check that HEAD has not moved since `own_state` was stored."""
    if own_state is None or own_state.directory != directory:
        return False
    return not own_state.git_dir or head_stamp(own_state.git_dir) == own_state.stamp


def standstill(observed: Observation, state: OwnState | None) -> list[object]:
    """Return the fingerprint of a prompt with nothing to report.

    It consists of a checksum, and of git's directory if HEAD matters. HEAD is taken from `state`,
    as at the last comparison with the other sessions."""
    own_directory = observed.own.directory
    git_dir, stamp = (state.git_dir, state.stamp) if state and own_directory else ("", [])
    inbox = state.inbox if state else []
    return [_fingerprint(observed, git_dir, [*stamp, *inbox]), git_dir]


def is_standstill(observed: Observation) -> bool:
    """Check if the last prompt had nothing to report and its fingerprint is still the same."""
    try:
        with Opened(observed.own.cursor_file) as descriptor:
            head = read_at(descriptor, 0, _STANDSTILL_BYTES)
    except OSError:
        return False
    if not head.startswith(_STANDSTILL_START):
        return False
    kept, end_mark, _ = head[len(_STANDSTILL_START) :].partition(_STANDSTILL_END)
    try:
        fingerprint, git_dir = decode(kept.decode() + '"]') if end_mark else (0, "")
    except (ValueError, TypeError):
        return False
    if not end_mark or not isinstance(git_dir, str):
        return False
    stamp = [*(head_stamp(git_dir) if git_dir else []), *inbox_stamp(observed.own)]
    return bool(fingerprint == _fingerprint(observed, git_dir, stamp))


def _fingerprint(observed: Observation, git_dir: str, stamp: list[int]) -> int:
    own_session, first_sight = observed.own, observed.settings.first_sight_seconds
    lines = [f"{git_dir} {stamp} {own_session.directory} {own_session.path} {first_sight}"]
    lines += [
        f"{session.key} {stamp_of(status)} {session.sub_agent_bytes}"
        for session, status in observed.listed
    ]
    return (
        int.from_bytes("\n".join(lines).encode("utf-8", "surrogateescape"), "little") % _LARGE_PRIME
    )


class OwnSession:
    """The session that the hook runs for.

    It has its key, runtime, state file (`cursor_file`), transcript, start directory (`start`, and
    `directory`, which is '' if collisions do not matter), and home if known. `deadline` is the
    hook's.

    `keeps_transcript` tells if a transcript exists after the first answer, None if unknown.
    `prompt` is the current prompt, `prompt_id` its id; a prompt in the middle of a turn has the
    turn's id. `process` names the runtime's process. Both are '' if unknown. `known_sub_agents` are
    as in Session. `old_sessions` are those that were left out of the others."""

    def __init__(
        self,
        key: str,
        runtime: Runtime,
        cursor_file: str,
        path: str = "",
        directory: str = "",
        home: Home | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.key = key
        self.runtime = runtime
        self.cursor_file = cursor_file
        self.path = path
        self.directory = directory if path else ""
        self.start = directory
        self.home = home
        self.deadline = deadline or Deadline()
        self.keeps_transcript: bool | None = None
        # because its HEAD moved, or its file's copy in another worktree was edited
        self.may_conflict = False
        self.prompt = self.prompt_id = ""
        self.process = ""
        self.known_sub_agents: Sequence[str] = ()
        self.old_sessions: Sequence[OldSessions] = ()
        self._sub_agents: dict[str, list[str]] = {}

    def may_name_file(self) -> bool:
        """Check if the prompt may name a file: if one of its first words has a dot inside."""
        if "." not in self.prompt:
            return False
        return any(["." in word[1:-1] for word in self.prompt[:PROMPT_CHARACTERS].split()])

    def runtime_of(self, session: Session) -> Runtime:
        """Return the runtime of another session; by default this session's."""
        return session.runtime or self.runtime

    def id_of(self, session: Session) -> str:
        """Return the id of another session."""
        return self.runtime_of(session).session_id_of(session.path)

    def relevant_old(
        self, others: Iterable[Session], keys: Iterable[str], oldest: float
    ) -> list[Session]:
        """Return the old sessions, except the `others`, that have one of the `keys` or wrote
        something since `oldest`."""
        if not self.old_sessions:
            return []
        known = {self.key, *[session.key for session in others]}
        wanted = {key for key in keys if key not in known}
        relevant: list[Session] = []

        def take(old: OldSessions) -> None:
            relevant.extend(old.relevant(wanted, oldest))

        self.deadline.attempt_each(self.old_sessions, take, lambda _: "old sessions")
        return [session for session in relevant if session.key not in known]

    def sub_agents(self) -> list[str]:
        """Return the transcripts of this session's sub-agents."""
        return [*self.runtime.sub_agents(self.path), *self.known_sub_agents]

    def sub_agents_of(self, session: Session) -> list[str]:
        """Return the transcripts of another session's sub-agents, listed once."""
        if session.path not in self._sub_agents:
            transcripts = [
                *self.runtime_of(session).sub_agents(session.path),
                *session.known_sub_agents,
            ]
            self._sub_agents[session.path] = transcripts
        return self._sub_agents[session.path]

    @property
    def user_dir(self) -> str:
        """The person's home directory; '' if unknown."""
        return self.home.user_dir if self.home else ""
