"""The sessions of a home, for the tools of its agent. Only its user can switch between them, in the program that runs
the agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..archives.former_names import former_names
from ..runtimes.detection import running_session
from ..settings.privacy import Privacy
from ..text.format import one_line
from ..transcripts.sessions import UnknownSessionError, find_sessions
from .archive_search import search_archives
from .backend import ListedSession, RefusedError
from .store_backend import StoreBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.postgres.engine import TeamPool
    from ..transcripts.entries import Entry
    from ..transcripts.sessions import FoundSession
    from .backend import Search, SearchLimits, SearchResult

_ONLY_THE_USER = "Nothing has changed yet, since only the user can do that. Tell them to"


class HomeBackend(StoreBackend):
    """The `Backend` of the home at `path`, by default the current one (an agent home, or the project)."""

    def __init__(
        self,
        path: str | None,
        environ: Mapping[str, str],
        search: Search | None = None,
        teams: TeamPool | None = None,
    ) -> None:
        super().__init__(path, path, environ, search, teams)
        self._path = path
        self._found: dict[str, FoundSession] = {}

    @property
    def administration(self) -> None:
        """See Backend."""
        return None

    def sessions(self) -> list[ListedSession]:
        """See Backend."""
        own_runtime, own_id = running_session(self._environ, os.getppid())
        try:
            found = find_sessions(self._path, False, self._environ, own_id=own_id, former_names=former_names)
        except UnknownSessionError:  # a home without sessions yet
            found = []
        self._found = {one.id: one for one in found}
        own = own_runtime.name if own_runtime else found[0].runtime.name if found else ""
        other = {one.id: one.runtime.name for one in found if one.runtime.name != own}
        return [
            ListedSession(one.id, one.name, one.id, one.modified, one.id == own_id, runtime=other.get(one.id, ""))
            for one in found
        ]

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """See Backend."""
        return self._found[session.id].last_entries(count)

    def clear(self, name: str) -> str:
        """See Backend."""
        runtime, own_id = running_session(self._environ, os.getppid())
        if runtime is None:
            return f"{_ONLY_THE_USER} begin a new conversation in the program in which they talk to you."
        types = runtime.install
        return (
            f"{_ONLY_THE_USER} type `{types.RENAME.format(name=one_line(name))}`, then `{types.CLEAR}`. This "
            f"conversation is kept: `{types.RESUME.format(id=own_id)}` in a terminal comes back to it."
        )

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """See Backend."""
        if session.is_active:
            raise RefusedError(f"you are in {session.name!r} already", "there is nothing to resume")
        runtime = self._found[session.id].runtime
        types = runtime.install
        first = f"type `{types.RENAME.format(name=one_line(save_as))}`, then " if save_as else ""
        return (
            f"{_ONLY_THE_USER} {first}leave this conversation and run `{types.RESUME.format(id=session.id)}` in a "
            "terminal, in the directory that this one was started in."
        )

    def _own_session(self) -> str:
        return running_session(self._environ, os.getppid())[1]

    def _search_archives(self, query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
        self.sessions()
        homes = {one.home.conversations_dir: one.home for one in self._found.values()}
        privacy = Privacy(self._environ, *homes.values())
        return search_archives({directory: (directory, privacy) for directory in homes}, query, limit, limits)
