"""`session-memory graph`: searches the knowledge graph that the strategy graphiti makes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from ...app.commands.arguments import add_common
from ...app.commands.output import brief
from ...common.system.terminal import Result, Terminal, print_error
from ...common.text.format import one_line
from ...common.text.sanitize import for_prompt
from ...history.store.location import StoreLocation, find_location
from ...sessions.settings.sections import memory_settings
from ._packages import missing_packages
from .graphs import is_there, search_graph
from .values import GraphFact

SUMMARY = "search the knowledge graph that Graphiti built from conversations"
LIMIT = 10
QUERY_CHARACTERS = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("search",))
    parser.add_argument("words", nargs="+", metavar="WORDS", help="a question or a topic")
    parser.add_argument(
        "--untrusted", action="store_true", help="only memories from untrusted sessions"
    )
    add_common(parser, limit=LIMIT)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    query = " ".join(arguments.words)
    location = find_location(arguments.home, os.environ)
    facts = search_graph(location, query, arguments.limit, is_untrusted=arguments.untrusted)
    is_made = bool(facts) or is_there(location, is_untrusted=arguments.untrusted)
    terminal.show(FoundFacts(facts, query, is_made))
    if not is_made:
        what = f"no knowledge graph{' of untrusted sessions' * arguments.untrusted}"
        how = "`session-memory process` makes one from conversations that have ended"
        print_error(f"there is {what} yet: {how}", _steps_before(location))
    return 0 if facts else 1


@dataclass(frozen=True)
class FoundFacts(Result):
    """The facts of the graph that fit a query; `is_made` if a graph was made."""

    facts: Sequence[GraphFact]
    query: str
    is_made: bool

    def show(self, terminal: Terminal) -> None:
        for fact in self.facts:
            times = f" ({fact.times})" if fact.times else ""
            terminal.line(one_line(for_prompt(fact.fact)) + times)
        if self.is_made and not self.facts:
            query = brief(self.query, QUERY_CHARACTERS)
            terminal.line(f"The graph knows nothing about {query}.")

    def as_json(self) -> dict[str, Any]:
        return {"facts": [fact._asdict() for fact in self.facts]}


def _steps_before(location: StoreLocation) -> str:
    """Return the missing steps before a graph can be made, one a line."""
    chosen = memory_settings(location.home.settings().memories).strategies
    steps = ["session-memory install --with graphiti"] if missing_packages() else []
    if "graphiti" not in chosen:
        names = ", ".join([*chosen, "graphiti"])
        steps.append(f"session-memory config memories.strategies {quote(f'[{names}]')}")
    return "\n".join(steps)
