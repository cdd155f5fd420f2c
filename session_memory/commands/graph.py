"""`session-memory graph`: searches the knowledge graph that the strategy graphiti makes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..memories.folders import groups_of, home_of, strategies_directory
from ..memories.strategies.graphiti import settings as graph_settings
from ..memories.strategies.graphiti import strategy as graph
from ..memories.strategies.graphiti.database import EMBEDDED, group_id
from ..store.location import find_location
from ..store.sqlite.memory_index import MemoryIndex
from ..system.terminal import Terminal
from ..text.format import one_line
from ..text.sanitize import for_prompt
from .arguments import add_common, add_limit
from .output import brief

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ..memories.strategies.graphiti.strategy import GraphFact
    from ..memories.strategy import Usage
    from ..store.location import StoreLocation

SUMMARY = "search the knowledge graph that graphiti made of conversations"
LIMIT = 10
MORE = 3  # times as many facts are asked for, as some may be hidden
QUERY_CHARACTERS = 80

T = TypeVar("T")


class _NoBudget:
    """A budget without limit: a search costs the embedding of one short text."""

    @contextmanager
    def call(self, estimate: Usage) -> Iterator[_NoBudget]:
        yield self

    def report(self, usage: Usage) -> None:
        """Does nothing: no account is kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of graph."""
    parser.add_argument("action", choices=("search",))
    parser.add_argument("words", nargs="+", metavar="WORDS", help="a question, or what it is about")
    parser.add_argument("--untrusted", action="store_true", help="only what untrusted sessions said")
    add_limit(parser, LIMIT)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Searches. Raises SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    query = " ".join(arguments.words)
    location = find_location(arguments.home, os.environ)
    found = search_graph(location, query, arguments.limit, is_untrusted=arguments.untrusted)
    terminal.result({"facts": [fact._asdict() for fact in found]})
    for fact in found:
        terminal.line(_line(fact))
    if not found:
        terminal.line(f"The graph knows nothing about {brief(query, QUERY_CHARACTERS)}.")
    return 0 if found else 1


def search_graph(location: StoreLocation, query: str, limit: int, *, is_untrusted: bool = False) -> list[GraphFact]:
    """The facts in the graphs of the groups that may be seen, best first, at most `limit` of each; without those that
    were said in a session of which rules exclude anything. Raises SessionMemoryError."""
    found: list[GraphFact] = []
    for group in groups_of(location):
        id = group_id(group, is_untrusted=is_untrusted)

        async def searched(opened: graph.Graph) -> list[GraphFact]:
            return await opened.search(query, limit * MORE)

        facts = in_graph(location, id, searched) or []
        found += _shown(location, group, facts)[:limit]
    return found


def forget_in_graph(location: StoreLocation, group: str, until: Mapping[str, int]) -> int:
    """Removes from the graphs of a group what was said in sessions up to a time; returns how many episodes that were.
    Raises SessionMemoryError."""

    async def forgotten(opened: graph.Graph) -> int:
        return sum([await opened.forget(session, before) for session, before in until.items()])

    ids = [group_id(group, is_untrusted=is_untrusted) for is_untrusted in (False, True)]
    return sum([in_graph(location, id, forgotten) or 0 for id in ids])


def in_graph(location: StoreLocation, group: str, ask: Callable[[graph.Graph], Awaitable[T]]) -> T | None:
    """What `ask` returns for the graph of a group; None where there is no such graph. Raises SessionMemoryError."""
    values = home_of(location).settings().memories.get("graphiti", {})
    settings = graph_settings.settings_of(values)
    url = graph.url_of(settings, strategies_directory(location))
    path = f"{url.removeprefix(f'{EMBEDDED}://')}/{group}.kuzu"
    if url.startswith(EMBEDDED) and not os.path.exists(path):
        return None  # opening it would make an empty graph

    async def asked() -> T:
        async with graph.opened(settings, url, group, _NoBudget()) as opened:
            return await ask(opened)

    return asyncio.run(asked())


def _shown(location: StoreLocation, group: str, facts: list[GraphFact]) -> list[GraphFact]:
    with closing(MemoryIndex(location.database, location.rules)) as index:
        hidden = index.excluded_sessions(group, [session for fact in facts for session in fact.sessions])
    return [fact for fact in facts if hidden.isdisjoint(fact.sessions)]


def _line(fact: GraphFact) -> str:
    """A fact, with the days from which and until which it held."""
    since = f"since {fact.valid_at[:10]}" if fact.valid_at else ""
    until = f"until {fact.invalid_at[:10]}" if fact.invalid_at else "superseded" if fact.expired_at else ""
    times = ", ".join([part for part in (since, until) if part])
    return one_line(for_prompt(fact.fact)) + (f" ({times})" if times else "")
