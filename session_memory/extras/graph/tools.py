"""The tool `search_graph`: facts of the knowledge graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...app.tools.results import RECORD, SNIPPET_CHARACTERS, with_room
from ...app.tools.values import limits_in
from ...common.errors import SessionMemoryError
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...app.tools.backend import Backend
    from .values import GraphFact

GRAPH_SECONDS = 20.0  # an agent waits for the answer, at most a minute in a sandbox
_EVERY_PROJECT = "*"
NO_FACTS = (
    "The graph has no facts about that. Try other words, or search_sessions: a conversation "
    "enters the graph some time after it has ended."
)


def is_offered(backend: Backend) -> bool:
    """Return whether the agent's home fills a knowledge graph and its packages are installed."""
    from ...history.store.location import find_location
    from ._packages import missing_packages

    if missing_packages():
        return False
    try:
        location = find_location(backend.path, backend.environ)
        return "graphiti" in location.memory_settings.strategies
    except SessionMemoryError:  # invalid settings, which `doctor` reports
        return False


def search_graph(backend: Backend, arguments: Mapping[str, Any]) -> str:
    """Search the graphs of the homes that the agent may see."""
    limit = arguments.get("limit", 10)
    location = backend.searched_location()
    from .graphs import project_here
    from .graphs import search_graph as facts_in

    project = None
    if arguments.get("project") != _EVERY_PROJECT:
        project = limits_in(arguments).project or project_here(location)
    facts = facts_in(
        location, arguments["query"], limit, project=project, timeout_seconds=GRAPH_SECONDS
    )
    return _graph_facts(facts, limit)


def _graph_facts(facts: list[GraphFact], limit: int) -> str:
    """Return the facts of the knowledge graph, numbered, with their sessions."""
    if not facts:
        return NO_FACTS
    blocks = with_room(_graph_fact(fact, number) for number, fact in enumerate(facts, 1))
    heading = f"{counted(len(blocks), 'fact')}, best first. {RECORD}"
    if len(blocks) < len(facts):
        heading += f" {len(facts) - len(blocks)} more did not fit: ask a narrower question."
    elif len(facts) >= limit:
        heading += " There may be more: use a higher limit, or ask a narrower question."
    return "\n\n".join([heading, *blocks])


def _graph_fact(fact: GraphFact, number: int) -> str:
    text = shorten(one_line(for_prompt(fact.fact)), SNIPPET_CHARACTERS)
    known = [one_line(for_prompt(part)) for part in (fact.times, fact.source) if part]
    return f"{number}. {text} ({'; '.join(known) or 'no date'})"
