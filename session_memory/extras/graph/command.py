"""`session-memory graph`: searches the knowledge graph that the strategy graphiti fills."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from ...app.commands.arguments import add_common, add_project
from ...app.commands.output import brief
from ...common.errors import WrongCallError
from ...common.system.terminal import Result, Terminal, print_error
from ...common.text.format import one_line
from ...common.text.sanitize import for_prompt
from ...history.store.location import StoreLocation, find_location
from ._packages import missing_packages
from .graphs import is_there, project_here, search_graph
from .values import GraphFact

SUMMARY = "search the knowledge graph that Graphiti built from conversations"
LIMIT = 10
QUERY_CHARACTERS = 80


def is_set_up(environ: Mapping[str, str]) -> bool:
    """Check if the home here uses the strategy `graphiti`. Raises ConfigError."""
    return "graphiti" in _strategies(find_location(None, environ))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("search",))
    parser.add_argument("words", nargs="+", metavar="WORDS", help="a question or a topic")
    parser.add_argument(
        "--untrusted", action="store_true", help="only memories from untrusted sessions"
    )
    add_project(parser)
    parser.add_argument(
        "--all", action="store_true", help="search all projects, not only the current one"
    )
    add_common(parser, limit=LIMIT)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    query = " ".join(arguments.words)
    location = find_location(arguments.home, os.environ)
    if arguments.all and arguments.project:
        raise WrongCallError("--all takes no project", "drop --all, or the project")
    project = None if arguments.all else arguments.project or project_here(location)
    facts = search_graph(
        location, query, arguments.limit, project=project, is_untrusted=arguments.untrusted
    )
    is_made = bool(facts) or is_there(location, is_untrusted=arguments.untrusted)
    terminal.show(FoundFacts(facts, query, is_made, is_of_project=project is not None))
    if not is_made:
        what = f"no knowledge graph{' of untrusted sessions' * arguments.untrusted}"
        how = "`session-memory process` makes one from conversations that have ended"
        print_error(f"there is {what} yet: {how}", _steps_before(location))
    return 0 if facts else 1


@dataclass(frozen=True)
class FoundFacts(Result):
    """The facts of the graph that fit a query; `is_made` means that a graph exists.

    `is_of_project` means that only a project's facts were searched."""

    facts: Sequence[GraphFact]
    query: str
    is_made: bool
    is_of_project: bool

    def show(self, terminal: Terminal) -> None:
        for fact in self.facts:
            known = "; ".join([part for part in (fact.times, fact.source) if part])
            terminal.line(one_line(for_prompt(f"{fact.fact} ({known})" if known else fact.fact)))
        if self.is_made and not self.facts:
            query = brief(self.query, QUERY_CHARACTERS)
            where = " in this project; --all searches all projects" if self.is_of_project else ""
            terminal.line(f"The graph knows nothing about {query}{where}.")

    def as_json(self) -> dict[str, Any]:
        return {"facts": [fact._asdict() for fact in self.facts]}


def _strategies(location: StoreLocation) -> Sequence[str]:
    return location.memory_settings.strategies


def _steps_before(location: StoreLocation) -> str:
    """Return the missing steps before a graph can be made, one a line."""
    chosen = _strategies(location)
    steps = ["session-memory install --with graphiti"] if missing_packages() else []
    if "graphiti" not in chosen:
        names = ", ".join([*chosen, "graphiti"])
        steps.append(f"session-memory config memories.strategies {quote(f'[{names}]')}")
    return "\n".join(steps)
