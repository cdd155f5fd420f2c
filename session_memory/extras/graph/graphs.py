"""Searching and forgetting in the graphs of the groups that the caller may see."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, nullcontext
from typing import TypeVar

from ...app.projects import Project, project_directories, read_project
from ...history.store.location import StoreLocation
from ...memory.folders import strategies_directory
from ...memory.memory_index import MemoryIndex
from ...memory.strategy import ModelCall, StrategyError, Usage
from . import strategy as graph
from ._database import EMBEDDED, graph_name_of
from ._groups import ProjectGroups
from .settings import GraphitiSettings
from .values import GraphFact

MORE = 3  # factor for the facts to fetch, as some may be hidden

T = TypeVar("T")


class _NoBudget:
    """A budget without limit: a search costs the embedding of one short text."""

    def call(self, estimate: Usage) -> AbstractContextManager[ModelCall]:
        return nullcontext(self)

    def report(self, usage: Usage) -> None:
        pass  # no account is kept


def search_graph(
    location: StoreLocation,
    query: str,
    limit: int,
    *,
    project: Project | None = None,
    is_untrusted: bool = False,
    timeout_seconds: float | None = None,
) -> list[GraphFact]:
    """Return the facts in the visible homes' graphs, the best first, at most `limit` per home.

    They are from one project or from all, without facts from sessions that rules exclude in part.
    It takes at most `timeout_seconds` in all, else the settings' timeout per graph. Raises
    SessionMemoryError."""
    visible: list[GraphFact] = []
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds

    directories = project_directories(project, location.home) if project else ()
    wanted = ProjectGroups(project, directories)

    async def searched(opened: graph.Graph) -> list[GraphFact]:
        return await opened.search(query, limit * MORE, wanted)

    for home_name in location.home_names:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        facts = (
            _in_graph(location, graph_name_of(home_name, is_untrusted=is_untrusted), searched, left)
            or []
        )
        with closing(MemoryIndex(location.database, location.rules)) as index:
            hidden = index.excluded_sessions(
                home_name, [session for fact in facts for session in fact.sessions]
            )
        visible += [fact for fact in facts if hidden.isdisjoint(fact.sessions)][:limit]
    return visible


def project_here(location: StoreLocation) -> Project | None:
    """Return the current directory's project, the default for searches.

    It is None for an agent's or a host's home, whose memory is not divided for its agent."""
    is_person = not location.home.sessions_dir and tuple(location.home_names) == ("",)
    return read_project(".", os.environ) if is_person else None


def is_there(location: StoreLocation, *, is_untrusted: bool = False) -> bool:
    """Return whether any of these graphs exists. A graph on a server is assumed to exist.

    Raises SessionMemoryError."""
    ids = [graph_name_of(home_name, is_untrusted=is_untrusted) for home_name in location.home_names]
    return any(_place(location, id) for id in ids)


def forget_in_graphs(location: StoreLocation, sessions: Iterable[tuple[str, str, int]]) -> None:
    """Remove sessions, each as (home, id, until when), from the graphs of their groups.

    Raises SessionMemoryError."""
    by_home: dict[str, dict[str, int]] = {}
    for home_name, session, until in sessions:
        by_home.setdefault(home_name, {})[session] = until
    for home_name, untils in by_home.items():
        _forget_in_graph(location, home_name, untils)


def _forget_in_graph(location: StoreLocation, name: str, until: Mapping[str, int]) -> int:
    """Remove the content of sessions up to a time from a group's graphs.

    Return the number of episodes removed. Raises SessionMemoryError."""

    async def forgotten(opened: graph.Graph) -> int:
        return sum([await opened.forget(session, before) for session, before in until.items()])

    ids = [graph_name_of(name, is_untrusted=is_untrusted) for is_untrusted in (False, True)]
    return sum([_in_graph(location, id, forgotten) or 0 for id in ids])


def _in_graph(
    location: StoreLocation,
    name: str,
    ask: Callable[[graph.Graph], Awaitable[T]],
    timeout_seconds: float | None = None,
) -> T | None:
    """Return the result of `ask` for a group's graph; None without a graph.

    Raises SessionMemoryError."""
    place = _place(location, name)
    if place is None:
        return None
    settings, url = place
    return asyncio.run(_asked(graph.opened(settings, url, name, _NoBudget()), ask, timeout_seconds))


def _place(location: StoreLocation, name: str) -> tuple[GraphitiSettings, str] | None:
    """Return settings and URL of a group's graph; None if opening it would create an empty one."""
    values = location.home.settings().memories.get("graphiti", {})
    settings = graph.settings_of(values)
    url = graph.url_of(settings, strategies_directory(location))
    path = f"{url.removeprefix(f'{EMBEDDED}://')}/{name}.kuzu"
    return None if url.startswith(EMBEDDED) and not os.path.exists(path) else (settings, url)


async def _asked(
    opening: AbstractAsyncContextManager[graph.Graph],
    ask: Callable[[graph.Graph], Awaitable[T]],
    timeout_seconds: float | None,
) -> T:
    """Open the graph, await `ask` and close the graph, all in this task.

    Closing Kuzu ends all its other uses."""
    task, is_late = asyncio.current_task(), False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        if task:
            task.cancel()

    timer = (
        None
        if timeout_seconds is None
        else asyncio.get_running_loop().call_later(timeout_seconds, stop)
    )
    try:
        async with opening as opened:
            try:
                return await ask(opened)
            finally:
                if timer:
                    timer.cancel()  # never interrupt closing
    except asyncio.CancelledError as error:
        if not is_late:
            raise
        raise StrategyError(
            "the graph did not answer in time", "try again later", is_temporary=True
        ) from error
