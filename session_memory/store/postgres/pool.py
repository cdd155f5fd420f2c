"""The open stores of a team that a program keeps which asks it again and again, and which servers did not answer it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...text.format import counted
from .connection import PATIENCE_SECONDS, UnreachableTeamError
from .engine import TeamStore

SILENCE_SECONDS = 30  # that a server which did not answer is not asked again


class TeamPool:
    """Connections to teams for the page and the tools of an agent, so that no request waits for a new one. A server
    that did not answer is skipped for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a connection is made: others wait for the result
        self._free: list[TeamStore] = []
        self._silence: tuple[str, float, str] = ("", 0.0, "")  # a URL, until when it is skipped, and why

    @contextmanager
    def store(self, url: str) -> Iterator[TeamStore]:
        """Lend the store of the team at `url` for the block. Raises TeamError."""
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
            if not self._free:  # one is enough while a user types: a server has few connections
                self._free.append(store)
                return
        store.close()

    def close(self) -> None:
        """Close those that nobody has."""
        with self._lock:
            stores, self._free = self._free, []
        for store in stores:
            store.close()

    def _had(self, url: str) -> TeamStore:
        """Return an open store that is not in use, else a new one."""
        from .engine import TeamStore

        with self._lock:
            silent, until, why = self._silence
            if url == silent and (seconds := round(until - time.monotonic())) > 0:
                raise UnreachableTeamError(f"{why}; it is asked again in {counted(seconds, 'second')}")
            while self._free:
                store = self._free.pop()
                if store.url == url and store.answers():
                    return store
                store.close()
            try:
                return TeamStore(url, seconds=PATIENCE_SECONDS)
            except UnreachableTeamError as error:
                self._note(url, error)
                raise

    def _note(self, url: str, error: UnreachableTeamError) -> None:
        self._silence = (url, time.monotonic() + SILENCE_SECONDS, str(error))
