"""Read access for agents to the knowledge graph.

The imports stand inside the functions: the MCP server starts with every session of an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.location import StoreLocation
    from .strategies.graphiti.strategy import GraphFact

ANSWER_SECONDS = 20.0  # an agent waits for the answer, at most a minute in a sandbox


def has_graph(path: str | None, environ: Mapping[str, str]) -> bool:
    """Return whether graphiti is configured for the home `path` (default: the current home) and its packages are
    installed. Raises ConfigError, NoStoreError."""
    from .strategies.graphiti import missing_packages

    if missing_packages():
        return False
    from ..settings.sections import memory_settings
    from ..store.location import find_location

    return "graphiti" in memory_settings(find_location(path, environ).home.settings().memories).strategies


def ask_graph(location: StoreLocation, query: str, limit: int) -> list[GraphFact]:
    """Return the facts that `search_graph` finds within ANSWER_SECONDS. Raises SessionMemoryError."""
    from .strategies.graphiti.graphs import search_graph

    return search_graph(location, query, limit, timeout_seconds=ANSWER_SECONDS)
