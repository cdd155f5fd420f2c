"""`session-memory mcp`: the tools as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import os
from functools import partial

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import exit_code
from ...sessions.settings.host_layout import Layout
from ..tools import Backend, GroupBackend, HomeBackend
from ..tools._stdio_server import serve_this_process
from ..tools.call import Served, call
from ..tools.definitions import tools_for
from .arguments import HOME

SUMMARY = "serve the tools for sessions to an MCP client, on stdin and stdout"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    location = parser.add_mutually_exclusive_group()
    location.add_argument("--home", metavar="PATH", help=HOME)
    location.add_argument(
        "--host", metavar="DIR", help="the directory of a host that has the group --group"
    )
    location.add_argument(
        "--ipc", metavar="DIR", help="a group's data/ipc: its host answers through files there"
    )
    parser.add_argument("--group", metavar="NAME", help="the group whose sessions are served")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client closes stdin. Raises SessionMemoryError."""
    if bool(arguments.host) != bool(arguments.group):
        raise WrongCallError(
            "--host and --group go together", "session-memory mcp --host DIR --group NAME"
        )
    serve_this_process(_served(arguments))
    return 0


def main(words: list[str] | None = None) -> int:
    """Return the server as a program of its own, for plugins; the exit code."""
    parser = argparse.ArgumentParser(prog="session-memory mcp", description=SUMMARY)
    add_arguments(parser)
    arguments = parser.parse_args(words)
    return exit_code(lambda: run(arguments))


def _served(arguments: argparse.Namespace) -> Served:
    if arguments.ipc:
        from ...extras.host.request_files import RequestFiles

        if not os.path.isdir(f"{arguments.ipc}/tasks"):
            raise SessionMemoryError(
                f"{arguments.ipc}: no tasks/ in there", "name the group's directory in data/ipc"
            )
        return RequestFiles(arguments.ipc).served()
    if arguments.host:
        backend: Backend = _group_backend(arguments.host, arguments.group)
    else:
        backend = HomeBackend(arguments.home, os.environ)
    return Served(tools_for(backend), partial(call, backend))


def _group_backend(directory: str, group: str) -> GroupBackend:
    from ...extras.host.administration import HostAdministration
    from ...history.archives.writer import open_sessions  # for a host: these need packages

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
    return GroupBackend(layout, group, open_sessions(layout), administration=administration)
