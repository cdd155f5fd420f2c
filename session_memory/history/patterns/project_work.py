"""The work of sessions by project, with its commits and the files that are not committed.

It starts git, so prompts never use it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...common.system.git import Worktree, commit_of, find_worktree, head_of, is_commit
from ...common.system.git_process import GitUnavailableError
from ...sessions.transcripts.earlier_paths import present_directory
from ..git.commits import Commit, Repository
from ..store.sqlite.written_lines import known_key
from ._why_evidence import CallEvidence
from .work import BrokenCommand, WorkedSession

if TYPE_CHECKING:
    from ...sessions.settings.homes import Home
    from ..store.sqlite.engine import SqliteStore
    from ..store.values import Filter

MOST_FILES = 300  # of a worktree that are compared with its commit


class WorktreeChanges(NamedTuple):
    """Files that sessions edited and nobody committed, relative to their worktree at `root`.

    `branch` is the one checked out, '' for none."""

    root: str
    branch: str
    files: tuple[str, ...]


class SessionCommit(NamedTuple):
    """A commit, and the id of the session that made it; '' for a person or an unknown session."""

    commit: Commit
    session_id: str


class ProjectWork(NamedTuple):
    """The sessions of a project, the earliest first, its commits, the latest first, and changes.

    `directory` is the project's, or one that is inside. `problem` says why git could not list
    the commits, '' if it could."""

    directory: str
    sessions: tuple[WorkedSession, ...]
    commits: tuple[SessionCommit, ...] = ()
    uncommitted: tuple[WorktreeChanges, ...] = ()
    problem: str = ""

    def commits_of(self, work: WorkedSession) -> int:
        """Return how many commits a session made."""
        return sum(made.session_id == work.id for made in self.commits)


class WorkSince(NamedTuple):
    """The work since a time: the sessions, the earliest first, the commands that still fail, and
    the projects, the one with the most requests first."""

    sessions: list[WorkedSession]
    broken: list[BrokenCommand]
    projects: list[ProjectWork]

    @classmethod
    def read(cls, store: SqliteStore, home: Home, wanted: Filter) -> WorkSince:
        """Return the work that fits since `wanted.since`.

        `home` knows where removed worktrees were. Raises DatabaseError."""
        every = WorkedSession.all_since(store, wanted)
        return cls(
            every, BrokenCommand.all_in(every), _projects_of(store, home, every, wanted.since or 0)
        )


def _projects_of(
    store: SqliteStore, home: Home, every: Sequence[WorkedSession], since: int
) -> list[ProjectWork]:
    worktrees = _Worktrees(home)
    by_place: dict[str, list[WorkedSession]] = {}
    for work in every:
        worktree = worktrees.at(work.conversation.cwd)
        place = worktree.common_dir if worktree else work.conversation.cwd
        by_place.setdefault(place, []).append(work)
    projects = []
    for works in by_place.values():
        directory = works[-1].conversation.cwd
        project = ProjectWork(directory, tuple(works))
        if worktree := worktrees.at(directory):
            project = _with_git(project, worktree, worktrees, store, since)
        projects.append(project)
    return sorted(projects, key=lambda each: -sum(len(work.requests) for work in each.sessions))


class _Worktrees:
    """The worktrees of directories, wherever they are by now."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, Worktree | None] = {}

    def at(self, directory: str) -> Worktree | None:
        """Return the worktree of a directory; of a removed one, the repository's."""
        if directory not in self._known:
            present = ""
            if directory.startswith("/"):
                present = present_directory(self._home.repositories_file, directory)
            is_there = os.path.isdir(present)
            self._known[directory] = (
                find_worktree(present, self._home.user_dir) if is_there else None
            )
        return self._known[directory]


def _with_git(
    project: ProjectWork, worktree: Worktree, worktrees: _Worktrees, store: SqliteStore, since: int
) -> ProjectWork:
    """Return the project with its commits and changes, or with the problem that git has."""
    try:
        commits = _commits(project, worktree, worktrees, store, since)
    except GitUnavailableError as error:
        return project._replace(problem=str(error).partition("\n")[0])
    return project._replace(commits=commits, uncommitted=_uncommitted(project, worktree, worktrees))


def _commits(
    project: ProjectWork, worktree: Worktree, worktrees: _Worktrees, store: SqliteStore, since: int
) -> tuple[SessionCommit, ...]:
    """Return the commits since a time on any branch and in any worktree of the sessions."""
    repository = Repository(worktree.git_dir, worktree.root)
    trees = [worktrees.at(work.conversation.cwd) for work in project.sessions]
    heads = dict.fromkeys(commit_of(tree) for tree in trees if tree)
    evidence = CallEvidence(store, repository, known_key(store.path))
    made = []
    for commit in repository.commits_since(since, [head for head in heads if head]):
        call = evidence.maker_of(commit)
        made.append(SessionCommit(commit, call.session_id if call else ""))
    return tuple(made)


def _uncommitted(
    project: ProjectWork, worktree: Worktree, worktrees: _Worktrees
) -> tuple[WorktreeChanges, ...]:
    """Return the changes in each worktree of the repository, the most files first."""
    by_root: dict[str, tuple[Worktree, Counter[str]]] = {}
    for work in project.sessions:
        for path in work.files:
            place = os.path.realpath(os.path.dirname(path))
            tree = worktrees.at(place)
            if tree and tree.root and tree.common_dir == worktree.common_dir:
                inside = os.path.relpath(f"{place}/{os.path.basename(path)}", tree.root)
                by_root.setdefault(tree.root, (tree, Counter()))[1][inside] += 1
    changes = []
    for tree, files in by_root.values():
        left: list[str] = []
        with suppress(GitUnavailableError):
            left = Repository(tree.git_dir, tree.root).uncommitted(list(files)[-MOST_FILES:])
        branch = head_of(tree.git_dir)
        if left:
            branch = "" if is_commit(branch) else branch
            changes.append(WorktreeChanges(tree.root, branch, tuple(left)))
    return tuple(sorted(changes, key=lambda each: -len(each.files)))
