"""Conflicts between the live sessions of a repository, before the merge.

The sessions are in different worktrees or on different branches."""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..awareness.activity.conflicts import KeptConflict
from ..awareness.activity.session_edits import SessionCalls
from ..common.errors import SessionMemoryError, described
from ..common.extensions import load_present
from ..common.system.git import Worktree, find_worktree, head_of, is_commit
from ..common.system.git_directories import GitDirectory, remove_leftovers
from ..common.system.git_process import GitUnavailableError
from ..common.text.format import one_line, shorten
from ..common.text.sanitize import for_people, quotable
from ..extension_points import OTHER_SOURCES
from ..sessions.runtimes.table import all_runtimes
from ..sessions.settings.compiled import OFF
from ..sessions.settings.homes import Home
from ..sessions.settings.privacy import Privacy
from ..sessions.transcripts.sessions import FoundSession, UnknownSessionError, find_sessions
from .git.branches import Branches, default_branch
from .git.merges import Conflict, Merges

if TYPE_CHECKING:
    from ..app.upkeep.run import Run

LIVE_SECONDS = 24 * 3600.0
MOST_SESSIONS = 40
MOST_SIDES = 8  # of a repository, the latest
_TOO_MANY = f"only the {MOST_SIDES} latest active branches of a repository are compared"
SECONDS = 2.0  # for a repository
NAME_CHARACTERS = 60  # of a session on another machine
# a file's time and the time of the call that wrote it may differ so much on coarse file systems
SLACK_SECONDS = 2.0
_ENTRIES = 200  # of a session, for its directory and its edits


class Side:
    """A branch of the repository at `common_dir` with live sessions, the latest first.

    `worktree` has the branch checked out; None if no worktree of these sessions has."""

    def __init__(self, common_dir: str, worktree: Worktree | None, branch: str) -> None:
        self.common_dir = common_dir
        self.worktree = worktree
        self.branch = branch
        self.sessions: list[FoundSession] = []
        self.calls: dict[str, SessionCalls] = {}  # by the id of a session

    @property
    def root(self) -> str:
        """Return the root of its worktree, '' without one."""
        return self.worktree.root if self.worktree else ""

    def author_of(self, path: str, lines: Sequence[str]) -> FoundSession | None:
        """Return the session that provably wrote most of these lines of a file, or None.

        `path` is relative to the root. Edits with these lines are proof. Without any, the only
        session that edited the file with unknown lines is the author."""
        whole = f"{self.root}/{path}"
        edits = [
            (session, edit)
            for session in self.sessions
            for edit in self.calls[session.id].edits
            if edit.path == whole
        ]
        written, by_path = Counter[str](), dict[str, FoundSession]()
        is_by_time = not any(map(str.strip, lines))
        for session, edit in edits:
            count = edit.count_written(lines)
            written[session.id] += count or 0
            if count is None:
                by_path[session.id] = session
                is_by_time = is_by_time or edit.is_command
        for session in self.sessions:
            if 2 * written[session.id] > sum(bool(line.strip()) for line in lines):
                return session
        if len(by_path) != 1 or (
            is_by_time and not _is_last_written_by(whole, self.calls.values())
        ):
            return None
        return next(iter(by_path.values()))


class OthersChange(Protocol):
    """A file that a session on another machine changed.

    `session` is its number in the shared store, `who` is as in ann@laptop, and the time is in
    milliseconds since 1970."""

    @property
    def session(self) -> int: ...

    @property
    def who(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def runtime(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def branch(self) -> str: ...

    @property
    def at(self) -> int: ...


class Clash(NamedTuple):
    """A file that would not merge, seen from one side.

    There are three kinds. With `other`, it conflicts with that side. With `commits`, that many
    commits of the default branch `other_branch` touch the side's changes. With `change`, a session
    on another machine changed the file. It is certain if a trial merge confirms it. `texts` returns
    the lines of the file on both sides, until the next clash is requested; it raises
    GitUnavailableError."""

    own: Side
    other: Side | None
    conflict: Conflict
    other_branch: str = ""
    commits: int = 0
    texts: Callable[[], tuple[list[str], list[str]]] = lambda: ([], [])
    change: OthersChange | None = None
    is_certain: bool = True

    def as_kept(self, now: float) -> KeptConflict:
        """Return the conflict in the stored form. `now` is when upkeep found it."""
        if self.change is not None:
            kept = self._kept_of(self.change, now)
        elif self.other is not None:
            kept = self._kept_beside(self.other, now)
        else:
            path, branch = quotable([self.conflict.path, self.other_branch])
            kept = KeptConflict(path, int(now), branch=branch)
        side, conflict = self.own, self.conflict
        sides = side.root, self.other.root if self.other else ""
        if self.change is not None:
            sides = side.root, self.change.who
        pair = (conflict.path, *sides, self.other_branch, conflict.objects[1])
        kept.file, kept.root = f"{side.root}/{conflict.path}", side.root
        kept.lines, kept.hunks = conflict.lines, conflict.hunks
        kept.deleted_by, kept.commits = conflict.deleted_by, self.commits
        kept.is_certain = self.is_certain
        kept.key, kept.pair = _hashed(*pair, conflict.objects[0]), _hashed(*pair)
        return kept

    def _kept_beside(self, other: Side, now: float) -> KeptConflict:
        """Return the stored form of a conflict with a worktree or branch on this machine."""
        author = other.author_of(self.conflict.path, self._lines_of_other())
        name, runtime = (author.name, author.runtime.TITLE) if author else ("", "")
        path, name, runtime, branch = quotable(
            [self.conflict.path, name, runtime, self.other_branch]
        )
        at = min(now, _changed_at(other, self.conflict.path, other.sessions[0].last_at))
        sessions = [session.id for session in other.sessions]
        name = f'"{name}"' if name else ""
        return KeptConflict(path, at, name=name, runtime=runtime, branch=branch, sessions=sessions)

    def _kept_of(self, change: OthersChange, now: float) -> KeptConflict:
        """Return the stored form of a conflict with a session on another machine."""
        titles = {runtime.name: runtime.TITLE for runtime in all_runtimes()}
        runtime = f"{titles.get(change.runtime, change.runtime)}, {change.who}"
        name = shorten(change.title, NAME_CHARACTERS)
        path, name, runtime, branch = quotable([self.conflict.path, name, runtime, change.branch])
        at, sessions = min(now, change.at / 1000), [change.session_id, f"{change.session}"]
        name = f'"{name}"' if name else ""
        return KeptConflict(path, at, name=name, runtime=runtime, branch=branch, sessions=sessions)

    def _lines_of_other(self) -> list[str]:
        """Return the other side's lines of the first hunk; [] without lines or if git fails."""
        first, last = self.conflict.lines[1]
        try:
            return self.texts()[1][first - 1 : last] if first else []
        except GitUnavailableError:
            return []


def _keep_conflicts(home: Home, path: str, environ: Mapping[str, str], now: float) -> int:
    """Find the conflicts between a home's live sessions, store them for prompts, and count them.

    Raises SessionMemoryError, OSError."""
    listed = live_sessions(path, environ, now)
    conflicts = [clash.as_kept(now) for clash in find_conflicts(sides_of(listed, home.user_dir))]
    privacy = Privacy(environ, home)
    rules = dict.fromkeys(file for session in listed for file in privacy.files(session.start))
    KeptConflict.keep(home, conflicts, rules)
    return len(conflicts)


def keep_in_upkeep(run: "Run") -> None:
    """Find and store conflicts as a step of upkeep, if the settings want collisions.

    Errors are only logged."""
    home = run.location.home
    if run.is_spent() or home.settings().collisions == OFF:
        return
    try:
        _keep_conflicts(home, home.root, run.location.environ, time.time())
    except (SessionMemoryError, OSError) as error:
        run.note(f"conflicts: {one_line(for_people(described(error)))}")


def live_sessions(path: str | None, environ: Mapping[str, str], now: float) -> list[FoundSession]:
    """Return the last day's sessions that may be shown completely, the latest first."""
    since = now - LIVE_SECONDS
    bare = {
        key: value
        for key, value in environ.items()
        if key not in {r.OWN_ID_VARIABLE for r in all_runtimes()}
    }
    try:
        sessions = find_sessions(path, True, bare, since=since, most=MOST_SESSIONS)
    except UnknownSessionError:  # for example in a home whose first session has just begun
        return []
    return [session for session in sessions if session.has_text and session.last_at >= since]


class Unjudged(NamedTuple):
    """Two sides whose merge could not be tried, and why.

    If `paths` are given, only these files could not be judged. Without `other`, the side was
    compared with no other."""

    own: Side
    other: Side | None
    paths: tuple[str, ...]
    reason: str

    @property
    def names(self) -> list[str]:
        """Return the names of the sides: their branches, else their roots."""
        return [side.branch or side.root for side in (self.own, self.other) if side]

    @property
    def line(self) -> str:
        """The line about it for a person."""
        paths = f" ({', '.join(self.paths)})" if self.paths else ""
        return for_people(
            one_line(f"Not judged: {' with '.join(self.names)}{paths}: {self.reason}")
        )


def find_conflicts(
    sides: Iterable[Side], seconds: float = SECONDS, unjudged: list[Unjudged] | None = None
) -> Iterator[Clash]:
    """Yield the conflicts between the sides of each repository.

    Each conflict is yielded for each of its sides with a worktree. Merges that git cannot judge, at
    all or in time, are left out and added to `unjudged`."""
    remove_leftovers()
    left_out = [] if unjudged is None else unjudged
    repositories: dict[str, list[Side]] = {}
    for side in sides:
        repositories.setdefault(side.common_dir, []).append(side)
    for common_dir, sides in repositories.items():
        with GitDirectory() as directory:
            merges = Merges(common_dir, Path(directory.path), seconds)
            yield from _clashes(sides[:MOST_SIDES], merges, common_dir, left_out)
        left_out += [Unjudged(side, None, (), _TOO_MANY) for side in sides[MOST_SIDES:]]


def _clashes(
    sides: list[Side], merges: Merges, common_dir: str, unjudged: list[Unjudged]
) -> Iterator[Clash]:
    commits = _states(sides, merges, unjudged)
    judged = [side for side in sides if id(side) in commits]
    for near, other in combinations(judged, 2):
        if near.root and near.root == other.root:
            continue
        try:
            conflicts = merges.conflicts(commits[id(near)], commits[id(other)])
        except (GitUnavailableError, OSError) as error:
            unjudged.append(Unjudged(near, other, (), str(error)))
            continue
        if merges.left_out:
            reason = (
                f"this clone is partial and lacks versions of them; {_fetching(near, other)} "
                f"fetches these"
            )
            unjudged.append(Unjudged(near, other, tuple(merges.left_out), reason))
        for conflict in conflicts:
            for near_side, its, seen in ((near, other, conflict), (other, near, _turned(conflict))):
                if near_side.worktree:
                    yield Clash(near_side, its, seen, its.branch, texts=partial(merges.texts, seen))
    for side in judged:
        yield from _with_others(side, commits[id(side)], merges)
    try:
        name, refs = default_branch(common_dir)
        targets = {ref: merges.commit_of(common_dir, ref) for ref in refs}
    except (GitUnavailableError, OSError):
        return
    for side in judged:
        if side.worktree and side.branch != name:
            yield from _behind(side, commits[id(side)], name, targets, merges)


def _states(sides: list[Side], merges: Merges, unjudged: list[Unjudged]) -> dict[int, str]:
    """Return the sides by the ids of their commits.

    A commit includes uncommitted files that another side changed too."""
    heads: dict[int, tuple[str, set[str]]] = {}
    commits: dict[int, str] = {}
    for side in sides:
        try:
            heads[id(side)] = _head(side, merges)
        except (GitUnavailableError, OSError) as error:
            unjudged.append(Unjudged(side, None, (), str(error)))
    for side in [side for side in sides if id(side) in heads]:
        try:
            commits[id(side)] = heads[id(side)][0]
            if side.worktree:
                others = [head for key, head in heads.items() if key != id(side)]
                wanted = merges.wanted(side.worktree, others)
                for source in load_present(OTHER_SOURCES.values()):
                    wanted |= source.paths_in(side)
                commits[id(side)] = merges.state_of(side.worktree, wanted)
        except (GitUnavailableError, OSError) as error:
            del commits[id(side)]
            unjudged.append(Unjudged(side, None, (), str(error)))
    return commits


def _head(side: Side, merges: Merges) -> tuple[str, set[str]]:
    """Return the commit of a side, and its uncommitted files.

    Raises GitUnavailableError, OSError."""
    if side.worktree is None:
        return merges.commit_of(side.common_dir, f"refs/heads/{side.branch}"), set()
    head = merges.commit_of(side.worktree.git_dir, "HEAD")
    return head, {change.path for change in merges.changes_of(side.worktree)}


def _fetching(side: Side, other: Side) -> str:
    """Return the git command that fetches the objects for a merge of two sides."""
    return f"`git merge-tree {side.branch or 'HEAD'} {other.branch or 'HEAD'}`"


def _with_others(side: Side, commit: str, merges: Merges) -> Iterator[Clash]:
    """Yield the conflicts with changes on other machines."""
    for source in load_present(OTHER_SOURCES.values()) if side.worktree else ():
        with suppress(GitUnavailableError, OSError):
            for change, conflict, is_certain in source.conflicts_with(side, commit, merges):
                yield Clash(
                    side,
                    None,
                    conflict,
                    change.branch,
                    texts=partial(merges.texts, conflict),
                    change=change,
                    is_certain=is_certain,
                )


def _behind(
    side: Side, commit: str, name: str, targets: Mapping[str, str], merges: Merges
) -> Iterator[Clash]:
    """Yield the first conflict with the default branch.

    Its file was changed by the default branch and edited by the side's sessions."""
    edited = {edit.path for calls in side.calls.values() for edit in calls.edits}
    for target in targets.values():
        try:
            paths = [
                path for path in merges.changed(commit, target) if f"{side.root}/{path}" in edited
            ]
            number = merges.commits_since(commit, target, paths) if paths else 0
        except (GitUnavailableError, OSError):
            continue
        if number:
            yield Clash(side, None, Conflict(paths[0], objects=(target, "")), name, number)
            return


def sides_of(listed: list[FoundSession], user_dir: str) -> list[Side]:
    """Return the sides of the sessions, the side of the latest session first."""
    branches, sides = Branches(user_dir), dict[tuple[str, str], Side]()
    for session in listed:
        try:
            entries, _ = session.last_entries(_ENTRIES)
        except Exception:  # any error affects only this session
            continue
        cwd = next((entry.cwd for entry in reversed(entries) if entry.cwd), session.start)
        worktree = find_worktree(cwd, user_dir) if cwd else None
        if worktree is None or not worktree.root:
            continue
        head = head_of(worktree.git_dir)
        branch = "" if is_commit(head) else head
        then = branches.checked_out(cwd, session.last_at)
        is_left = bool(then) and then != branch  # the worktree is on another branch since
        key = (worktree.common_dir, then) if is_left else (worktree.root, "")
        new = Side(worktree.common_dir, None if is_left else worktree, then if is_left else branch)
        side = sides.setdefault(key, new)
        side.sessions.append(session)
        permitted, since = (
            (session.gate.done if session.gate else None),
            session.last_at - LIVE_SECONDS,
        )
        side.calls[session.id] = SessionCalls(
            session.session, session.runtime, entries, permitted, since
        )
    return list(sides.values())


def _turned(conflict: Conflict) -> Conflict:
    deleted = None if conflict.deleted_by is None else 1 - conflict.deleted_by
    hunks = tuple((other, hunk) for hunk, other in conflict.hunks)
    return Conflict(conflict.path, hunks, deleted, conflict.objects[::-1])


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _is_last_written_by(path: str, calls: Iterable[SessionCalls]) -> bool:
    """Check by the file's time if one of these calls' edits was the last to write it."""
    try:
        at = os.lstat(path).st_mtime
    except OSError:
        return False
    return any(
        edit.began - SLACK_SECONDS <= at <= edit.ended + SLACK_SECONDS
        for each in calls
        for edit in each.edits
        if edit.path == path
    )


def _changed_at(side: Side, path: str, otherwise: float) -> float:
    """Return when a side's file changed, in seconds since 1970; `otherwise` if that is unknown."""
    try:
        return os.lstat(f"{side.root}/{path}").st_mtime if side.root else otherwise
    except OSError:
        return otherwise
