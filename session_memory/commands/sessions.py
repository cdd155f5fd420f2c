"""`session-memory sessions`: which sessions there are, the latest first."""

from __future__ import annotations

import os
import time

from ..archives.former_names import former_names
from ..runtimes.detection import is_started_by_agent
from ..system.terminal import Terminal, byte_size
from ..text.timestamps import age, iso_time
from ..transcripts.sessions import FoundSession, find_sessions
from .arguments import OnlyForPeopleError, add_common

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

SUMMARY = "list the sessions of this project, the latest first"
LIMIT = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all(parser)
    add_common(parser, limit=LIMIT, private=True)


def add_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="the sessions of all projects, not only of this one")


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    if arguments.include_private and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private")
    most = arguments.limit + 1
    listed = known_sessions(arguments, os.environ, with_private=arguments.include_private, most=most)
    show_sessions(listed[: arguments.limit], terminal, is_cut=len(listed) > arguments.limit)
    return 0


def known_sessions(
    arguments: argparse.Namespace, environ: Mapping[str, str], *, with_private: bool, most: int | None = None
) -> list[FoundSession]:
    """Return the sessions that `--home` and `--all` ask for, the latest first, `most` of them. Raises
    SessionMemoryError, OSError."""
    return find_sessions(
        arguments.home, arguments.all, environ, with_private=with_private, most=most, former_names=former_names
    )


def is_own(one: FoundSession, environ: Mapping[str, str]) -> bool:
    return one.id == environ.get(one.runtime.OWN_ID_VARIABLE)


def show_sessions(listed: list[FoundSession], terminal: Terminal, *, is_cut: bool = False) -> None:
    """Show a line for each; `is_cut` says that there are more."""
    terminal.result({"sessions": [_as_json(one) for one in listed], "more": is_cut})
    if not listed:
        terminal.line("No sessions yet.")
        return
    rows = []
    are_several = len({one.runtime.name for one in listed}) > 1
    for one in listed:
        mark = "this one" if is_own(one, terminal.environ) else one.runtime.name if are_several else ""
        id = f"{one.id} ({mark})" if mark else one.id
        rows.append((one.name, age(time.time() - one.modified), byte_size(one.size), id))
    name, when, size = (max(len(row[column]) for row in rows) for column in range(3))
    for row in rows:
        terminal.line(f"{row[0]:<{name}}  {row[1]:<{when}}  {row[2]:>{size}}  {row[3]}")
    if is_cut:
        terminal.line(f"These are the latest {len(listed)}; there are more: --limit N shows them.")


def _as_json(one: FoundSession) -> dict[str, object]:
    return {
        "name": one.name,
        "id": one.id,
        "runtime": one.runtime.name,
        "modified": iso_time(one.modified),
        "bytes": one.size,
        "path": one.session.path if one.has_text else None,  # a path names a directory
    }
