"""What the page shows of the team that was joined, where one was: asked for each request, and never for a list."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..store.postgres.connection import UnreachableTeamError
from ..text.format import counted
from ..text.sanitize import for_people
from ..upkeep.team import PATIENCE_SECONDS, joined_team, project_of, team_of
from .choices import chosen_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..settings.homes import Home
    from ..store.postgres.connection import TeamError
    from ..store.postgres.engine import TeamStore
    from .choices import Choice
    from .page_request import PageRequest

SILENCE_SECONDS = 30  # that a server which did not answer is not asked again
TEAM = "team"  # as the value of `whose`


def whose(request: PageRequest) -> list[Choice]:
    """Whether this machine is asked or the team; nothing to choose where none was joined."""
    pairs = (("", "This machine"), (TEAM, "The team"))
    return chosen_of(pairs, request.one("whose")) if team_of(request.location.home).url else []


def is_for_team(request: PageRequest) -> bool:
    """Whether the team is asked."""
    return any(one.is_chosen for one in whose(request) if one.value == TEAM)


def problem_with(error: TeamError) -> str:
    """What to say in place of what the team has."""
    return for_people(f"The team cannot be asked now: {error}.")


class TeamPool:
    """The open stores of the team that requests are answered from, as in StorePool: whoever waits for a view does not
    wait for a connection. A server that did not answer is left alone for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a connection is made: others wait for what comes of it
        self._free: list[TeamStore] = []
        self._silence: tuple[str, float, str] = ("", 0.0, "")  # a URL, until when it is left alone, and why

    @contextmanager
    def store(self, home: Home) -> Iterator[TeamStore]:
        """The store of the team that a home has joined. Raises NoTeamError, TeamError."""
        url = joined_team(home).url
        store = self._had(url)
        try:
            yield store
        except UnreachableTeamError as error:
            self._note(url, error)
            store.close()
            raise
        except BaseException:
            store.close()
            raise
        with self._lock:
            if not self._free:  # one is enough for whoever types: a server has room for few connections
                self._free.append(store)
                return
        store.close()

    def close(self) -> None:
        """Closes those that nobody has."""
        with self._lock:
            stores, self._free = self._free, []
        for store in stores:
            store.close()

    def _had(self, url: str) -> TeamStore:
        """A store that is open and that nobody has, else a new one."""
        from ..store.postgres.engine import TeamStore

        with self._lock:
            silent, until, why = self._silence
            if url == silent and (seconds := round(until - time.monotonic())) > 0:
                raise UnreachableTeamError(f"{why}; it is asked again in {counted(seconds, 'second')}")
            while self._free:
                store = self._free.pop()
                if store.url == url and not store.is_gone:
                    return store
                store.close()
            try:
                return TeamStore(url, seconds=PATIENCE_SECONDS)
            except UnreachableTeamError as error:
                self._note(url, error)
                raise

    def _note(self, url: str, error: UnreachableTeamError) -> None:
        self._silence = (url, time.monotonic() + SILENCE_SECONDS, str(error))


def directories_of(request: PageRequest, directories: Iterable[str]) -> tuple[str, ...]:
    """Directories on this machine as the team calls the projects that they are in."""
    home = request.location.home
    names = team_of(home).projects
    return tuple(sorted({project_of(directory, names, home.user_dir)[0] or directory for directory in directories}))
