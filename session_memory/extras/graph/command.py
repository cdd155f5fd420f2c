"""`session-memory graph`: searches the knowledge graph that the strategy graphiti makes."""

from __future__ import annotations

import argparse
import os
from shlex import quote

from ...app.commands.arguments import add_common
from ...app.commands.output import brief
from ...common.system.terminal import Terminal, print_error
from ...common.text.format import one_line
from ...common.text.sanitize import for_prompt
from ...history.store.location import StoreLocation, find_location
from ...sessions.settings.sections import memory_settings
from ._packages import missing_packages
from .graphs import is_there, search_graph

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
    found = search_graph(location, query, arguments.limit, is_untrusted=arguments.untrusted)
    terminal.result({"facts": [fact._asdict() for fact in found]})
    for fact in found:
        terminal.line(one_line(for_prompt(fact.fact)) + (f" ({fact.times})" if fact.times else ""))
    if not found and not is_there(location, is_untrusted=arguments.untrusted):
        what = f"no knowledge graph{' of untrusted sessions' * arguments.untrusted}"
        how = "`session-memory process` makes one of conversations that have ended"
        print_error(f"there is {what} yet: {how}", _steps_before(location))
    elif not found:
        terminal.line(f"The graph knows nothing about {brief(query, QUERY_CHARACTERS)}.")
    return 0 if found else 1


def _steps_before(location: StoreLocation) -> str:
    """Return the missing steps before a graph can be made, one a line."""
    chosen = memory_settings(location.home.settings().memories).strategies
    steps = ["session-memory install --with graphiti"] if missing_packages() else []
    if "graphiti" not in chosen:
        names = ", ".join([*chosen, "graphiti"])
        steps.append(f"session-memory config memories.strategies {quote(f'[{names}]')}")
    return "\n".join(steps)
