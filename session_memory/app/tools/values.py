"""The values that the tools exchange with a backend. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.errors import SessionMemoryError
from ...common.text.timestamps import EXAMPLES, last_millisecond, milliseconds_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...history.store.values import Filter
    from ...sessions.settings.homes import Home
    from ..projects import Project


class RefusedError(SessionMemoryError):
    """A request that cannot be fulfilled; message and hint are for the model."""


class ListedSession(NamedTuple):
    """A session that the agent may see.

    `id` is the argument of resume_session, `session_id` the runtime's own id. `modified` is in
    seconds since the epoch, None if unknown. `is_active` marks the agent's current session.
    `home_name` is set only for a session of another home, such as another group of a host;
    `runtime` only for one of another runtime."""

    id: str
    name: str
    session_id: str
    modified: float | None = None
    is_active: bool = False
    home_name: str = ""
    runtime: str = ""


class SearchLimits(NamedTuple):
    """Limits of a search: the times `since` and `until`, and the `project`; None for no limit.

    Times are in milliseconds since the epoch."""

    since: int | None = None
    until: int | None = None
    project: Project | None = None

    def filter(self, limit: int, home: Home) -> Filter:
        """Return the limits as a filter of at most `limit` results."""
        from ...history.store.values import Filter
        from ..projects import limited_to

        wanted = Filter(since=self.since, until=self.until, limit=limit)
        return limited_to(self.project, wanted, home) if self.project else wanted


EVERYWHERE = SearchLimits()


class SearchResult(NamedTuple):
    """A message that a search found.

    It has the session, the speaker, the time in seconds since the epoch (or None), the snippet
    around the match, and the conversation ('' if none)."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class SearchResults(list[SearchResult]):
    """The results of a search, the best first.

    `notice` tells the agent what the search left out, '' if nothing."""

    def __init__(self, results: Iterable[SearchResult] = (), notice: str = "") -> None:
        super().__init__(results)
        self.notice = notice


def limits_in(arguments: Mapping[str, Any]) -> SearchLimits:
    """Return the limits in the arguments of a search. Raises RefusedError."""
    since, until = (
        _moment(arguments, "since", milliseconds_at),
        _moment(arguments, "until", last_millisecond),
    )
    return SearchLimits(since, until, _project(arguments))


def _project(arguments: Mapping[str, Any]) -> Project | None:
    """Return the project in the arguments; None if it is missing. Raises RefusedError."""
    from ..projects import read_project_of_agent

    if not arguments.get("project", ""):
        return None
    try:
        return read_project_of_agent(arguments["project"], os.environ)
    except (ValueError, OSError) as error:
        raise RefusedError(f"`project` is not usable: {error}", "name a directory") from error


def _moment(
    arguments: Mapping[str, Any], name: str, read: Callable[[str], int | None]
) -> int | None:
    """Return the time in an argument; None if it is missing. Raises RefusedError."""
    if name not in arguments:
        return None
    moment = read(arguments[name])
    if moment is None:
        raise RefusedError(f"`{name}` is not a time", f"give {EXAMPLES}")
    return moment
