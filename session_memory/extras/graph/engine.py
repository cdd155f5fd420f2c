"""The knowledge graph, as the tools of an agent search it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...history.store.location import find_location
from ...sessions.settings.sections import memory_settings
from ._packages import missing_packages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...app.tools.values import GraphFact
    from ...history.store.location import StoreLocation


def is_filled(path: str | None, environ: Mapping[str, str]) -> bool:
    """Return whether the home at `path` fills a knowledge graph, and its packages are there."""
    if missing_packages():
        return False
    try:
        location = find_location(path, environ)
        return "graphiti" in memory_settings(location.home.settings().memories).strategies
    except SessionMemoryError:  # invalid settings, which `doctor` reports
        return False


def search(
    location: StoreLocation, query: str, limit: int, timeout_seconds: float
) -> list[GraphFact]:
    """Return at most `limit` facts that match the query, the best first. Raises
    SessionMemoryError."""
    from .graphs import search_graph

    return search_graph(location, query, limit, timeout_seconds=timeout_seconds)
