"""The rows of Now: one for each file or branch in a collision, and one for each session.

Each row has a key and the time of its news: a row that was seen returns with the next news.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import NamedTuple

from ...app.active_sessions import ActiveSession
from ...app.labels import project_of
from ...awareness.activity.collisions.facts import PATH_CHARACTERS
from ...common.system.files import user_dir
from ...common.system.git import Worktree, find_worktree
from ...common.text.format import shorten
from ...common.text.paths import relative
from ...common.text.sanitize import for_people
from ._live import Alarm

_AGE = re.compile(r"\b(?:just now|\d+[smhd] ago)\b")
_LIST = re.compile(r", | and ")
_KEY_BYTES = 9

PlacePath = tuple[str, str]  # a repository's common directory, and a path in its worktrees


class Holder(NamedTuple):
    """A session with a file in hand: its last action with the time.

    `is_unaware` means that its next update tells it about the collision. `worktree` names the
    linked worktree with its copy of the file."""

    session: ActiveSession
    did: str
    at: float
    is_unaware: bool
    worktree: str = ""


class CollisionRow(NamedTuple):
    """A file that several sessions work on, and these sessions, the latest first.

    For a collision without a file, such as a branch that was switched, `subject` is the branch and
    `line` the text. `at` is the time of the last action, in seconds since 1970; `news` is the
    time of the last edit in milliseconds, 0 if unknown."""

    key: str
    subject: str
    project: str
    holders: list[Holder]
    at: float
    news: int
    line: str = ""

    @property
    def unaware(self) -> list[Holder]:
        return [holder for holder in self.holders if holder.is_unaware]

    @property
    def sessions(self) -> tuple[str, ...]:
        """The ids of the sessions in this row."""
        return tuple(holder.session.id for holder in self.holders)


class ActiveRow(NamedTuple):
    """A session; `news` is the time of its last message or of its request to its user."""

    key: str
    session: ActiveSession
    news: int

    @classmethod
    def of(cls, session: ActiveSession) -> ActiveRow:
        asked_at = session.state.since if session.state.needs_user else 0.0
        news = round(max(session.last_at, asked_at) * 1000)
        return cls(_key_of("session", session.origin, session.id), session, news)

    @property
    def sessions(self) -> tuple[str, ...]:
        return (self.session.id,)


class Notice(NamedTuple):
    """A problem for the user to fix; a dismissed one returns when its text changes."""

    key: str
    alarm: Alarm
    news: int = 0
    sessions: tuple[str, ...] = ()

    @classmethod
    def of(cls, alarm: Alarm) -> Notice:
        return cls(_key_of("notice", *alarm), alarm)


def _key_of(kind: str, *parts: str) -> str:
    """Return the key of a row or notice, which does not contain its texts."""
    text = "\0".join([kind, *parts]).encode("utf-8", "surrogatepass")
    return f"{kind}-{blake2b(text, digest_size=_KEY_BYTES).hexdigest()}"


def _awaits_prompt(session: ActiveSession) -> bool:
    """Check if a session probably gets another prompt: it is open, or its host resumes it."""
    return bool(session.origin) or not session.state.has_ended


def collision_rows(sessions: list[ActiveSession]) -> list[CollisionRow]:
    """Return the collisions that an update will tell, the latest first.

    Copies of a file in several worktrees are one row. A resolved collision is in no update, and
    sessions that have ended get none."""
    places = _Places()
    unaware: dict[PlacePath, dict[str, ActiveSession]] = {}
    others: dict[str, CollisionRow] = {}
    for session in filter(_awaits_prompt, sessions):
        for line in session.collisions:
            paths = _paths_in(line, session)
            for path in paths:
                unaware.setdefault(places.of(path), {})[session.id] = session
            if not paths:
                row = _row_of_line(session, line)
                others[row.key] = _merged(others.get(row.key), row)
    rows = [_row_of_file(place, named, sessions, places) for place, named in unaware.items()]
    return sorted([*rows, *others.values()], key=lambda row: -row.at)


def _paths_in(line: str, session: ActiveSession) -> list[str]:
    """Return the files that a line about a collision names; none for a line about a branch."""
    named, colon, _ = line.partition(": ")
    names = {named, *_LIST.split(named)} if colon else set()
    held = {_as_told(path, session.cwd): path for path, _, _ in session.hands}
    paths = [held[name] for name in names if name in held]
    if not paths and colon and session.cwd.startswith("/"):
        path = os.path.normpath(os.path.join(session.cwd, named))
        paths = [path] if os.path.lexists(path) else []
    return paths


def _row_of_file(
    place: PlacePath,
    unaware: dict[str, ActiveSession],
    sessions: list[ActiveSession],
    places: _Places,
) -> CollisionRow:
    holders = [
        Holder(session, did, at, session.id in unaware, places.linked_worktree(path))
        for session in sessions
        for path, did, at in session.hands
        if places.of(path) == place
    ]
    known = {holder.session.id for holder in holders}
    holders += [
        Holder(session, "", 0.0, True) for id, session in unaware.items() if id not in known
    ]
    holders.sort(key=lambda holder: -holder.at)
    edited_at = max((holder.at for holder in holders if holder.did == "edited"), default=0.0)
    first = holders[0]
    return CollisionRow(
        _key_of("file", *place),
        for_people(place[1] if place[0] else relative(place[1], first.session.cwd)),
        for_people(places.project(place) or first.session.project),
        holders,
        first.at or first.session.last_at,
        round(edited_at * 1000),
    )


def _row_of_line(session: ActiveSession, line: str) -> CollisionRow:
    """Return the row of a line about no known file; its subject is the session's branch."""
    key = _key_of("line", session.project, _AGE.sub("", line))
    subject = session.branch or line.partition(": ")[0]
    holder = Holder(session, "", session.last_at, True)
    return CollisionRow(key, subject, session.project, [holder], session.last_at, 0, line)


def _merged(known: CollisionRow | None, row: CollisionRow) -> CollisionRow:
    """Return one row for the same line in the updates of several sessions."""
    if known is None:
        return row
    return known._replace(holders=[*known.holders, *row.holders], at=max(known.at, row.at))


class _Places:
    """The repositories of files; each directory is looked up once."""

    def __init__(self) -> None:
        self._home = user_dir(os.environ)
        self._worktrees: dict[str, Worktree | None] = {}
        self._of: dict[str, PlacePath] = {}

    def of(self, path: str) -> PlacePath:
        """Return where a file is, which is the same for its copies in other worktrees."""
        if path not in self._of:
            worktree = self._worktree(path)
            self._of[path] = (
                (worktree.common_dir, relative(path, worktree.root)) if worktree else ("", path)
            )
        return self._of[path]

    def linked_worktree(self, path: str) -> str:
        """Return the name of the linked worktree with a file; '' for a main worktree or none."""
        worktree = self._worktree(path)
        is_linked = worktree is not None and worktree.git_dir != worktree.common_dir
        return for_people(worktree.name) if worktree and is_linked else ""

    def project(self, place: PlacePath) -> str:
        """Return the name of a file's project; '' outside repositories."""
        return project_of(place[0].removesuffix("/.git")) if place[0] else ""

    def _worktree(self, path: str) -> Worktree | None:
        return find_worktree(path.rpartition("/")[0], self._home, self._worktrees)


def _as_told(path: str, directory: str) -> str:
    """Return a path as a line about a collision names it."""
    return for_people(shorten(relative(path, directory), PATH_CHARACTERS))
