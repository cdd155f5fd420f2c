"""What an agent may ask of the knowledge graph: whether there is one, and for facts in it.

The imports stand where they are needed, since the server of the tools starts with every session of an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.location import StoreLocation
    from .strategies.graphiti.strategy import GraphFact

ANSWER_SECONDS = 20.0  # an agent waits for it, and one in a sandbox no longer than a minute


def has_graph(path: str | None, environ: Mapping[str, str]) -> bool:
    """Whether the settings for the home `path`, else for the one at hand, choose the strategy graphiti, and what it
    needs is installed. Raises ConfigError, NoStoreError."""
    from .strategies.graphiti import missing_packages

    if missing_packages():
        return False
    from ..settings.sections import memory_settings
    from ..store.location import find_location

    return "graphiti" in memory_settings(find_location(path, environ).home.settings().memories).strategies


def ask_graph(location: StoreLocation, query: str, limit: int) -> list[GraphFact]:
    """What `search_graph` finds, in the time that an agent waits. Raises SessionMemoryError."""
    from .strategies.graphiti.graphs import search_graph

    return search_graph(location, query, limit, timeout_seconds=ANSWER_SECONDS)
