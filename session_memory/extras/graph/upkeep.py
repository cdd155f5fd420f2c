"""The step that forgets sessions in the knowledge graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.system.json import as_object
from ...memory.folders import strategies_directory

if TYPE_CHECKING:
    from ...app.upkeep.run import Run


def forget(run: Run, sessions: list[tuple[str, str, int]]) -> None:
    """Delete sessions, each as (home, id, until when), from the knowledge graph, if any.

    Raises SessionMemoryError."""
    location = run.location
    settings = as_object(location.home.settings().memories.get("graphiti"))
    embedded = f"{strategies_directory(location)}/graphiti"
    if not settings.get("url") and not os.path.isdir(embedded):
        return
    from .graphs import forget_in_graphs

    try:
        forget_in_graphs(location, sessions)
    except SessionMemoryError as error:
        if settings.get("url"):
            raise
        raise SessionMemoryError(f"{error}; rm -r {embedded} deletes the whole graph") from error
