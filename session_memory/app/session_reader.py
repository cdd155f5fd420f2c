"""Reads the sessions that are open or were active today, again and again.

`agents` and the page use it. A reader that only has a share of a core reads what its user waits for
at once, which is the state of each session, and everything else as often as the share permits."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from ..awareness.events.delivery_state import delivery_state
from ..common.errors import described
from ..common.system.files import names_in, path_stamp, status_at
from ..common.text.sanitize import for_people
from ..sessions.runtimes.table import all_runtimes
from ..sessions.state_reader import StateReader
from ..sessions.states import State
from ..sessions.transcripts.sessions import FoundSession, UnknownSessionError, find_sessions
from .active_sessions import ENTRIES, ActiveSession
from .session_counts import active_since

TABLE_SECONDS = 2.0  # the processes are listed again after so long
TRANSCRIPT = ".jsonl"
MOST_UNLISTED = 50  # transcripts without a message that are looked at again
LATELY_SECONDS = 3600.0  # since its last record, a session with a new event
LISTING_SECONDS = 60.0  # and the sessions, if no directory has changed


class _Share:
    """A share of a core for some work; 0.0 means no limit."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._due_at = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Do the work of the block, which delays the next."""
        began = time.thread_time()
        yield
        if self._share:
            cost = time.thread_time() - began
            self._due_at = max(time.monotonic(), self._due_at) + cost / self._share


class _Followed:
    """A session that is read again and again, as it is shown."""

    def __init__(self, session: FoundSession) -> None:
        self.session = session
        self.shown = _shown_without_entries(session)
        self.delivered_at = 0.0
        self.directory = ""
        self._seen: tuple[object, float] = (None, -1.0)

    def is_old(self, seen: tuple[object, float], *, is_due: bool) -> bool:
        """Return whether to read the entries again: after a prompt, or if that `is_due`."""
        is_old = seen != self._seen and (is_due or seen[1] != self._seen[1])
        self._seen = seen if is_old else self._seen
        return is_old

    def read(self) -> None:
        """Read the last entries."""
        session = self.session
        try:
            entries = session.last_entries(ENTRIES)[0]
        except Exception as error:  # any error affects only this session
            problem = for_people(described(error))
            self.shown = _shown_without_entries(session)._replace(problem=problem)
            return
        last_at = max(
            (entry.timestamp for entry in entries if entry.timestamp is not None),
            default=session.last_at,
        )
        self.directory = next((entry.cwd for entry in reversed(entries) if entry.cwd), "")
        runtime = session.runtime.name
        shown = ActiveSession.of_entries(
            session.id, session.name, runtime, self.directory, entries, last_at
        )
        shown = shown._replace(later_request=session.later_request(entries))
        self.shown = shown.with_delivery_of(self.shown)


class SessionReader:
    """Reads the sessions in the agent home `home`, else of all runtimes of the user.

    Without `all_projects` only the current directory's project counts. With a `share`, reading
    takes about that share of a core. With `delivery_seconds`, each time takes so long for the
    updates of sessions, and reads none for 0; those that have ended need none. With `only`, read
    just the session with this id, if it was active lately and a person works in it."""

    def __init__(
        self,
        home: str | None,
        environ: Mapping[str, str],
        *,
        all_projects: bool = True,
        share: float = 0.0,
        delivery_seconds: float = math.inf,
        only: str = "",
    ) -> None:
        self._home = home
        self._only = only
        self._environ = environ
        self._all_projects = all_projects
        self._stamps: list[object] = []
        self._unlisted: list[str] = []
        self._listed_at = 0.0
        self._followed: dict[str, _Followed] = {}
        self._is_limited = bool(share)
        self._states = StateReader(environ, TABLE_SECONDS if share else 0.0)
        self._delivery_seconds = delivery_seconds
        self._listing, self._reading, self._delivering = [_Share(share / 3) for _ in range(3)]

    @property
    def covers_all(self) -> bool:
        """Return whether all sessions of the user are read."""
        return self._all_projects and not (self._home or self._only)

    def directories(self) -> list[str]:
        """Return the directories in or below which a file changes whenever a session does."""
        return [
            directory
            for runtime in all_runtimes()
            for directory in runtime.watched_dirs(runtime.config_dir(self._environ))
            if os.path.isdir(directory)
        ]

    def read(self, now: float) -> list[ActiveSession]:
        """Return the sessions at `now`, in seconds since 1970, the latest first.

        Raises UnknownSessionError if `home` has no sessions, OSError."""
        since = active_since(now)
        self._states.list_processes()
        self._list_sessions(since, now)
        for followed in self._followed.values():
            seen = self._states.look_at(followed.session)
            if followed.is_old(seen, is_due=self._reading.is_due):
                with self._reading.spending():
                    followed.read()
        states = self._states.states(
            [(each.session, each.directory) for each in self._followed.values()], now
        )
        shown = [
            (followed, states[path])
            for path, followed in self._followed.items()
            if not states[path].has_ended or followed.shown.last_at >= since
        ]
        shown.sort(key=lambda pair: pair[1].rank)
        self._deliver([followed for followed, state in shown if self._needs_delivery(state)])
        sessions = [followed.shown._replace(state=state) for followed, state in shown]
        return sorted(sessions, key=lambda each: -each.last_at)

    def _list_sessions(self, since: float, now: float) -> None:
        """List the sessions again, if there may be others."""
        stamps = self._directory_stamps() if self._is_limited else []
        is_old = stamps != self._stamps or time.monotonic() - self._listed_at >= LISTING_SECONDS
        if self._is_limited and self._listed_at and not (is_old and self._listing.is_due):
            return
        self._stamps, self._listed_at = stamps, time.monotonic()
        since = now - LATELY_SECONDS if self._only else min(since, self._states.first_began(now))
        with self._listing.spending():
            listed = self._find(since)
        followed = {}
        for session in listed:
            path = session.session.path
            followed[path] = self._followed.get(path) or _Followed(session)
            followed[path].session = session
        self._followed = followed
        self._unlisted = self._written_since(since) if self._is_limited else []
        self._states.forget(followed)

    def _find(self, since: float) -> list[FoundSession]:
        try:
            sessions = find_sessions(self._home, self._all_projects, self._environ, since=since)
        except UnknownSessionError:
            if self._home:
                raise
            return []  # no runtime has sessions yet
        return [each for each in sessions if not self._only or self._is_wanted(each)]

    def _is_wanted(self, session: FoundSession) -> bool:
        """Check that a session is the only one to be read, and a person's."""
        path = session.session.path
        return session.id == self._only and not session.runtime.is_automated(path)

    def _folders(self) -> Iterator[str]:
        """Yield the folders of all runtimes, and the transcripts that are in none."""
        for runtime in all_runtimes():
            config_dir = runtime.config_dir(self._environ)
            runtime.refresh(config_dir)  # new records of runtimes whose sessions are copied
            yield from runtime.all_folders(config_dir)

    def _directory_stamps(self) -> list[object]:
        """Return the times of the directories that change with a new transcript, and of transcripts
        without a session so far."""
        stamps: list[object] = [
            [folder] if folder.endswith(TRANSCRIPT) else path_stamp(folder)
            for folder in self._folders()
        ]
        return [*stamps, *map(path_stamp, self._unlisted)]

    def _written_since(self, since: float) -> list[str]:
        """Return transcripts without a session that were written since; most lack a message.

        Copilot makes a session's folder before the transcript."""
        paths: list[str] = []
        for folder in self._folders():
            names = [] if folder.endswith(TRANSCRIPT) else names_in(folder)
            paths += [f"{folder}/{name}" for name in names if name.endswith(TRANSCRIPT)] or [folder]
        statuses = [
            (path, status_at(path) or status_at(os.path.dirname(path)))
            for path in paths
            if path not in self._followed
        ]
        recent = [
            (status.st_mtime, path)
            for path, status in statuses
            if status and path.endswith(TRANSCRIPT)
        ]
        return [path for at, path in sorted(recent, reverse=True)[:MOST_UNLISTED] if at >= since]

    def _needs_delivery(self, state: State) -> bool:
        is_limited = self._is_limited or self._delivery_seconds < math.inf
        return not (is_limited and state.has_ended)

    def _deliver(self, every: list[_Followed]) -> None:
        """Read the updates of sessions again, and the collisions in them, as far as that is due:
        first where they are oldest."""
        if not self._delivery_seconds:
            return
        until = time.thread_time() + self._delivery_seconds
        for followed in sorted(every, key=lambda each: each.delivered_at):
            if (self._is_limited and not self._delivering.is_due) or time.thread_time() > until:
                return
            with self._delivering.spending():
                followed.delivered_at = time.monotonic()
                followed.shown = followed.shown.with_delivery(
                    partial(delivery_state, followed.session, self._environ)
                )


def _shown_without_entries(session: FoundSession) -> ActiveSession:
    name = for_people(session.name)
    return ActiveSession(session.id, name, session.runtime.name, "", "", session.last_at)
