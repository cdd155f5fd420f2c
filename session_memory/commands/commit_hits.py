"""Finds what a search for the hash of a commit means: its sessions, and what they said about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..patterns.why import Reasons
from ..settings.homes import user_dir
from ..store.sqlite.written_lines import known_key
from ..system.branches import GitUnavailableError
from ..system.commits import Commit, Repository
from ..system.git import find_worktree
from ..system.terminal import called_as
from .output import brief, moment

if TYPE_CHECKING:
    from ..store.values import Filter, Hits
    from .opened_store import OpenStore

MOST_CANDIDATES = 30  # by the words of the commit
SUBJECT_CHARACTERS = 80


def _commit_of(query: str) -> tuple[Repository, Commit] | None:
    """Return the commit of the current repository whose hash the query is; None if it is none."""
    worktree = find_worktree(os.getcwd(), user_dir(os.environ))
    if worktree is None or not worktree.root:
        return None
    repository = Repository(worktree.git_dir, worktree.root)
    try:
        found = repository.resolved(query)
        return (repository, repository.commit(found)) if found else None
    except GitUnavailableError:
        return None


def hits_of_commit(opened: OpenStore, hash: str, wanted: Filter) -> tuple[str, Hits] | None:
    """Search for the commit with this hash in the current repository by its subject, branch and files; its sessions
    first, by its lines and its date. Return the words that were searched for, and the hits; None for no commit."""
    found = _commit_of(hash)
    if found is None:
        return None
    repository, commit = found
    store = opened.store
    reasons = Reasons(store, repository, known_key(store.path), opened.location.homes)
    hits = store.search(commit.words, wanted._replace(limit=MOST_CANDIDATES))
    order = reasons.ordered(commit, [hit.conversation.session_id for hit in hits])
    place = {session: at for at, session in enumerate(order)}
    several = [store.search(commit.words, wanted._replace(session=one, limit=1)) for one in order[: wanted.limit]]
    known = {hit.entry.id: hit for some in [*several, hits] for hit in some}.values()
    best = sorted(known, key=lambda hit: place.get(hit.conversation.session_id, len(place)))
    opened.terminal.line(f"Commit {commit.id[:8]}, {moment(commit.at)}: {brief(commit.subject, SUBJECT_CHARACTERS)}")
    opened.terminal.line(f"  {called_as()} why {commit.id[:8]}\n")
    hits[:] = best[: wanted.limit]
    return commit.words, hits
