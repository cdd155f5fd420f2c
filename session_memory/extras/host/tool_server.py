"""The tools of a host's group, as `session-memory mcp` serves them."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError, WrongCallError

if TYPE_CHECKING:
    from ...app.tools.call import Served


def add_arguments(parser: argparse.ArgumentParser, places: argparse._ActionsContainer) -> None:
    """Add the options to a parser; the options in `places` exclude each other."""
    places.add_argument(
        "--host", metavar="DIR", help="the directory of a host with the group --group"
    )
    places.add_argument(
        "--ipc", metavar="DIR", help="a group's data/ipc: its host answers through files there"
    )
    parser.add_argument("--group", metavar="NAME", help="the group whose sessions are served")


def served(arguments: argparse.Namespace) -> Served | None:
    """Return the tools of the group that the arguments name; None if they name none.

    Raises SessionMemoryError."""
    if bool(arguments.host) != bool(arguments.group):
        raise WrongCallError(
            "--host and --group must be used together", "session-memory mcp --host DIR --group NAME"
        )
    if arguments.ipc:
        return _through_files(arguments.ipc)
    return _from_database(arguments.host, arguments.group) if arguments.host else None


def _through_files(directory: str) -> Served:
    from .request_files import RequestFiles

    if not os.path.isdir(f"{directory}/tasks"):
        raise SessionMemoryError(
            f"{directory}: no tasks/ in there", "name the group's directory in data/ipc"
        )
    return RequestFiles(directory).served()


def _from_database(directory: str, group: str) -> Served:
    from ...app.tools.call import Served, call
    from ...app.tools.definitions import tools_for
    from ...history.archives.writer import open_sessions  # for a host: these need packages
    from ...sessions.settings.host_layout import Layout
    from .administration import HostAdministration
    from .group_backend import GroupBackend

    layout = Layout(directory)
    if not os.path.isfile(layout.database):
        raise SessionMemoryError(
            f"{directory}: no host", "name the directory with store/messages.db in it"
        )
    if not os.path.isdir(layout.group(group).root):
        raise SessionMemoryError(
            f"{directory}: no group {group}", "its directory would be in groups/"
        )
    administration = HostAdministration(layout, group)
    backend = GroupBackend(layout, group, open_sessions(layout), administration=administration)
    return Served(tools_for(backend), partial(call, backend))
