"""`session-memory mcp`: the tools as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import os
from functools import partial

from ...common.extensions import load_present
from ...common.system.terminal import exit_code
from ...extension_points import TOOL_SERVERS
from ..tools._stdio_server import serve_this_process
from ..tools.call import Served, call
from ..tools.definitions import tools_for
from ..tools.home_backend import HomeBackend
from .arguments import HOME

SUMMARY = "serve the tools to an MCP client, on stdin and stdout"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--home", metavar="PATH", help=HOME)
    for server in load_present(TOOL_SERVERS.values()):
        server.add_arguments(parser, places)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client closes stdin. Raises SessionMemoryError."""
    serve_this_process(_served(arguments))
    return 0


def main(words: list[str] | None = None) -> int:
    """Run the server as a separate program, for plugins; return the exit code."""
    parser = argparse.ArgumentParser(prog="session-memory mcp", description=SUMMARY)
    add_arguments(parser)
    arguments = parser.parse_args(words)
    return exit_code(lambda: run(arguments))


def _served(arguments: argparse.Namespace) -> Served:
    for server in load_present(TOOL_SERVERS.values()):
        served: Served | None = server.served(arguments)
        if served:
            return served
    backend = HomeBackend(arguments.home, os.environ)
    return Served(tools_for(backend), partial(call, backend))
