"""Sharing with a team: which sessions of a machine's store are shared, in what form, and when."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from ... import __version__
from ...common.errors import SessionMemoryError
from ...common.system.files import read_whole, user_dir, write_atomically
from ...common.system.git import find_worktree, worktrees_of
from ...common.system.git_identity import origin_of
from ...common.system.json import as_object, sealed, unsealed
from ...common.text.sanitize import for_people
from ...common.text.timestamps import now_milliseconds
from ...history.git.branches import Branches
from ...history.store.location import StoreLocation
from ...history.store.refresh import Note
from ...history.store.rules import ReadRules
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.tool_uses import StoredFile, stored_files
from ...history.store.values import RuleSubject
from ...sessions.settings import forgotten
from ...sessions.settings.homes import Home
from ...sessions.settings.rules import SHARES
from ...sessions.settings.sections import expanded_path
from ._memories import MemoryPushReport
from .postgres._session_push import SharedSession
from .postgres.connection import PATIENCE_SECONDS
from .postgres.engine import LATELY_HOURS
from .push import SharedAs, TeamPushReport, push_new
from .settings import TeamSettings

if TYPE_CHECKING:
    from ...history.store.values import Conversation
    from .postgres.push import TeamPush

NOBODY = SHARES[0]


class TeamState(NamedTuple):
    """The last exchange with the team.

    It has the time of the last complete push, the problem since ('' for none) and the time it
    began, and the time when this machine last received others' activity. Times are in milliseconds
    since the epoch, 0 for never."""

    pushed_at: int = 0
    problem: str = ""
    problem_since: int = 0
    heard_at: int = 0


def team_of(home: Home) -> TeamSettings:
    """Return the team settings of a home. Raises ConfigError."""
    section, home_dir = home.settings().team, home.user_dir or user_dir(os.environ)
    projects = as_object(section.get("projects")).items()
    expanded = {expanded_path(path, home_dir): name for path, name in projects}
    return TeamSettings(**{**section, "projects": expanded})


class NoTeamError(SessionMemoryError):
    """The home has joined no team."""


class UnsharedError(SessionMemoryError):
    """Rules do not share the session with the team."""


def joined_team(home: Home) -> TeamSettings:
    """Return the team of a home. Raises NoTeamError, ConfigError."""
    team = team_of(home)
    if not team.url:
        raise NoTeamError(
            "this machine has not joined a team",
            "session-memory team join postgresql://USER@HOST/DATABASE",
        )
    return team


def read_state(home: Home) -> TeamState:
    """Read the state of the last exchange."""
    try:
        return TeamState(*unsealed(read_whole(_state_file(home))))
    except (OSError, ValueError, TypeError):
        return TeamState()


def _note_heard(home: Home, *, pushed: bool) -> None:
    """Record that others' activity was received and, if `pushed`, that the push was complete.

    Raises OSError."""
    now = now_milliseconds()
    state = TeamState(now) if pushed else read_state(home)
    write_atomically(_state_file(home), sealed(state._replace(heard_at=now)))


def note_problem(home: Home, problem: str) -> bool:
    """Record a problem; return whether it is new. Raises OSError."""
    before = read_state(home)
    since = before.problem_since or now_milliseconds()
    write_atomically(
        _state_file(home), sealed(TeamState(before.pushed_at, problem, since, before.heard_at))
    )
    return problem != before.problem


def push_to_team(
    store: SqliteStore,
    location: StoreLocation,
    note: Note,
    is_spent: Callable[[], bool] = lambda: False,
) -> tuple[TeamPushReport, MemoryPushReport]:
    """Push new sessions and memories to the home's team, and store others' recent activity.

    The activity is for its projects on this machine. Calls `note` with warnings for the user.
    Raises SessionMemoryError, OSError."""
    from ._activity import keep_activity, keep_handoffs, noted_starts
    from ._memories import push_memories
    from .conflicts import keep_others
    from .postgres.engine import others_files, others_handoffs, recent_sessions
    from .postgres.push import TeamPush

    team = team_of(location.home)
    sharing, tombstones = Sharing(location, team), forgotten.read(location.database)
    with closing(TeamPush(team.url, team.machine)) as pushing:
        report = push_new(
            store,
            pushing,
            sharing.shared_as,
            is_forgotten=lambda session: (
                _is_forgotten(tombstones, session) or sharing.is_held_back(session)
            ),
            is_spent=is_spent,
        )
        memories = push_memories(location, pushing, sharing.of_session, note, is_spent)
        report = report._replace(is_complete=report.is_complete and memories.is_complete)
        pushing.note_machine(__version__, pushed=report.is_complete)
        starts = sharing.starts(noted_starts(location.home))
        recent = recent_sessions(pushing, {project for project, _ in starts.values()})
        roots = _push_changes(pushing, sharing, location)
        changed = others_files(pushing, set(roots.values()))
        handoffs = others_handoffs(pushing, {project for project, _ in starts.values()})
    own_ids = {file.session_id for file in stored_files(store)}
    keep_others(location.home, changed, roots, own_ids)
    keep_activity(location.home, recent, starts, own_ids)
    keep_handoffs(location.home, handoffs, starts, own_ids)
    _note_heard(location.home, pushed=report.is_complete)
    return report, memories


def _push_changes(pushing: TeamPush, sharing: Sharing, location: StoreLocation) -> dict[str, str]:
    """Push the lines that live sessions changed, of files whose edits the team already has.

    Return the projects of their worktrees, by their local roots. Raises TeamError."""
    from ...history.conflicts import live_sessions, sides_of
    from .conflicts import changed_by_session
    from .postgres.engine import push_changed_files, shared_edits

    now = now_milliseconds() / 1000
    sides = sides_of(
        live_sessions(location.home.root, location.environ, now), location.home.user_dir
    )
    projects = {side.root: sharing.project(side.root) for side in sides if side.root}
    live = {session.id for side in sides for session in side.sessions}
    numbers = {
        pushed_session.session.session_id: pushed_session.id
        for pushed_session in pushing.pushed().values()
        if pushed_session.session.session_id in live
    }
    edits = shared_edits(pushing, numbers.values()) if numbers else {}
    changed = changed_by_session(
        sides, lambda root: projects[root][1], lambda id: edits.get(numbers.get(id, 0), set()), now
    )
    push_changed_files(
        pushing, {numbers[id]: files for id, files in changed.items() if id in numbers}
    )
    return {root: project for project, root in projects.values() if project}


def shared_session(
    store: SqliteStore, location: StoreLocation, last: Conversation
) -> tuple[StoredFile, SharedAs]:
    """Return the transcript of a session, given by its last conversation, and its sharing.

    Raises UnsharedError, DatabaseError, ConfigError."""
    for file, shared in shared_files(store, location):
        if file.file_path == last.source_file and file.home == last.home:
            return file, shared
    problem = f"session {last.session_id} is not shared, because rules exclude it or it is not in a project"
    raise UnsharedError(problem, "session-memory team preview lists the shared sessions")


def hand_over(
    store: SqliteStore,
    location: StoreLocation,
    file: StoredFile,
    branch: str,
    page: str,
) -> None:
    """Push new content, then the handoff page of a session.

    The page is deleted when its session is withdrawn. Raises SessionMemoryError, OSError."""
    from .postgres.engine import push_handoff
    from .postgres.push import TeamPush

    problems: list[str] = []
    push_to_team(store, location, problems.append)
    team = team_of(location.home)
    with closing(TeamPush(team.url, team.machine)) as pushing:
        known = pushing.pushed().get((file.home, file.file_path))
        if known is None:
            raise SessionMemoryError(
                "; ".join(problems) or "another process is pushing the session", "try again soon"
            )
        push_handoff(pushing, known.id, branch, page)


def withdraw_forgotten(
    location: StoreLocation,
    sessions: Collection[tuple[str, str]],
    memories: Mapping[str, Collection[str]],
) -> int:
    """Delete this machine's sessions, as (home, id), and memories, by home, from the team.

    Return the number deleted. Sessions that are still shared are pushed again next time. Raises
    TeamError if the server does not answer in time (the next push then deletes them all),
    ConfigError."""
    from .postgres.memories import pushed_memories, withdraw_memories
    from .postgres.push import TeamPush

    team = team_of(location.home)
    with closing(TeamPush(team.url, team.machine, seconds=PATIENCE_SECONDS)) as pushing:
        gone = [
            pushed_session
            for pushed_session in pushing.pushed().values()
            if (pushed_session.session.home, pushed_session.session.session_id) in sessions
        ]
        of_memories = pushed_memories(pushing)
        numbers = [
            memory.number
            for (home_name, id), memory in of_memories.items()
            if id in memories.get(home_name, ())
        ]
        pushing.withdraw(gone)
        withdraw_memories(pushing, numbers)
    return len(gone) + len(numbers)


def waiting_for_push(store: SqliteStore, location: StoreLocation) -> tuple[int, int]:
    """Return the number of sessions with entries to push, and the number of these entries.

    Raises DatabaseError, ConfigError."""
    from .postgres.push import TeamPush

    team = team_of(location.home)
    with closing(TeamPush(team.url, team.machine, seconds=PATIENCE_SECONDS)) as pushing:
        pushed = {
            key: pushed_session.next_number for key, pushed_session in pushing.pushed().items()
        }
    new = [
        file.next_number - pushed.get((file.home, file.file_path), 0)
        for file, _ in shared_files(store, location)
    ]
    return len([count for count in new if count > 0]), sum([count for count in new if count > 0])


def drop_state(home: Home) -> None:
    """Delete the state and the others' activity of a team that the home has left.

    Raises OSError."""
    from ._activity import drop_activity
    from .conflicts import drop_others

    drop_activity(home)
    drop_others(home)
    with suppress(FileNotFoundError):
        os.unlink(_state_file(home))


def unshared_counts(store: SqliteStore, location: StoreLocation) -> tuple[int, int]:
    """Return the numbers of sessions not shared: without a project, and excluded by rules."""
    sharing = Sharing(location, team_of(location.home))
    unshared = [file for file, shared in _shown_files(store, sharing) if not shared]
    nowhere = len([file for file in unshared if not sharing.project(file.cwd)[0]])
    return nowhere, len(unshared) - nowhere


def shared_files(store: SqliteStore, location: StoreLocation) -> list[tuple[StoredFile, SharedAs]]:
    """Return the files to share, each with its form. Raises DatabaseError, ConfigError."""
    sharing = Sharing(location, team_of(location.home))
    return [(file, shared) for file, shared in _shown_files(store, sharing) if shared]


def _shown_files(store: SqliteStore, sharing: Sharing) -> list[tuple[StoredFile, SharedAs | None]]:
    shown = [file for file in stored_files(store) if file.item_count and not file.is_excluded]
    return [(file, sharing.shared_as(file, None)) for file in shown]


class Sharing:
    """The sharing rules of a store at the time of creation.

    They are found by a session's transcripts, else by its id."""

    def __init__(self, location: StoreLocation, team: TeamSettings) -> None:
        self._team = team
        self._user_dir = location.home.user_dir
        self._rules: ReadRules = location.rules()
        self._branches = Branches(location.home.user_dir)
        self._projects: dict[str, tuple[str, str]] = {}
        self._sessions: dict[tuple[str, str], list[SharedAs | None]] = {}

    def shared_as(self, file: StoredFile, known: SharedSession | None) -> SharedAs | None:
        """Return the form in which a transcript is shared; None if it is not.

        `known` is the team's version: a project with a deleted directory keeps its name."""
        judged = RuleSubject(
            file.id, file.home, file.session_id, file.known_title, file.cwd, file.file_path
        )
        shared = self._judged(judged, known)
        if shared:
            shared = shared._replace(branch=self._branch(file, known))
        self._sessions.setdefault((file.home, file.session_id), []).append(shared)
        return shared

    def is_held_back(self, session: SharedSession) -> bool:
        """Return whether a rule that names a session allows fewer people than the team's copy.

        This is for sessions that the store no longer has, so nothing can replace them."""
        rule = self._rules.rule(
            RuleSubject(0, session.home, session.session_id, session.title, "", "")
        )
        return rule.is_private or (
            bool(rule.share) and SHARES.index(rule.share) < SHARES.index(session.share)
        )

    def of_session(self, home: str, session: str, directory: str) -> SharedAs | None:
        """Return how a session is shared, by its strictest transcript or its start directory."""
        if (home, session) not in self._sessions:
            return self._judged(RuleSubject(0, home, session, "", directory, ""), None)
        ways = [way for way in self._sessions[home, session] if way]
        is_shared = len(ways) == len(self._sessions[home, session])
        return min(ways, key=lambda way: SHARES.index(way.share)) if is_shared else None

    def _branch(self, file: StoredFile, known: SharedSession | None) -> str:
        """Return the branch of the session's last activity; if that is old, the team's version."""
        if now_milliseconds() - (file.last_at or 0) > LATELY_HOURS * 3_600_000:
            return known.branch if known else ""
        return for_people(self._branches.checked_out(file.cwd, (file.last_at or 0) / 1000))

    def _judged(self, judged: RuleSubject, known: SharedSession | None) -> SharedAs | None:
        share = self._rules.rule(judged).share or self._team.share
        if share == NOBODY:
            return None
        project, root = self.project(judged.cwd)
        if not project and known and not os.path.isdir(judged.cwd):
            project = known.project
            root = judged.cwd.removesuffix(known.cwd.removeprefix(project))
        return SharedAs(project, share, root) if project else None

    def project(self, directory: str) -> tuple[str, str]:
        """Return the result of `project_of`."""
        if directory not in self._projects:
            self._projects[directory] = project_of(directory, self._team.projects, self._user_dir)
        return self._projects[directory]

    def starts(self, noted: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return the projects, each with its local root, by start directory and by root.

        They are the projects of the sessions looked up, and of the directories in `noted` that
        rules do not exclude."""
        for directory in noted:
            if not self._rules.rule(RuleSubject(0, "", "", "", directory, "")).ignore:
                self.project(directory)
        known = [
            (start, project, root) for start, (project, root) in self._projects.items() if project
        ]
        return {path: (project, root) for start, project, root in known for path in (root, start)}


def project_of(directory: str, names: Mapping[str, str], user_dir: str) -> tuple[str, str]:
    """Return the project of a directory, the same on all machines, and its local root.

    The name is the one in `names` for the nearest parent directory or the repository's main
    worktree, else the repository's origin. Return ('', '') if unknown."""
    if not directory.startswith("/"):
        return "", ""
    real = os.path.realpath(directory)
    above = [
        path
        for path in names
        if f"{directory}/".startswith(f"{path}/") or f"{real}/".startswith(f"{path}/")
    ]
    worktree = find_worktree(directory, user_dir)
    if above:
        nearest = max(above, key=len)
        return names[nearest], nearest
    if worktree is None or not worktree.root:
        return "", ""
    main = next(
        (
            tree.root
            for tree in worktrees_of(worktree.common_dir)
            if tree.git_dir == tree.common_dir
        ),
        "",
    )
    return names.get(main) or origin_of(worktree.common_dir), worktree.root


def _is_forgotten(tombstones: list[forgotten.Tombstone], session: SharedSession) -> bool:
    until = forgotten.forgotten_until(tombstones, session.home, session.session_id, "")
    return until is not None and (session.last_at or 0) <= until


def _state_file(home: Home) -> str:
    return f"{home.state_dir}/team.json"
