"""`session-memory page`: opens a page in the browser, with all agents' work and memories."""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentTypeError
from collections.abc import Mapping

from ...app.commands import export
from ...app.commands.arguments import add_home
from ...app.commands.hooks_check import examine
from ...app.install.program_checks import WRONG
from ...awareness.events.log import notices
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import Terminal
from ...history.store.location import find_location
from ...sessions.settings.program import program_paths
from ._live import Alarm

SUMMARY = "open a page in the browser with the work, updates and memories of all agents"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        metavar="N",
        type=_port,
        default=0,
        help="the server's port (default: any free one)",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    # as `export SESSION --full --format html` does
    parser.add_argument("--export", help=argparse.SUPPRESS)
    parser.add_argument("--out", default="", help=argparse.SUPPRESS)
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or write a session to a file.

    Raises SessionMemoryError, OSError."""
    if arguments.export or arguments.out:
        return _export(arguments)
    from ._server import serve

    environ = dict(os.environ)
    terminal = Terminal(os.environ)
    serve(
        lambda: find_location(arguments.home, environ),
        environ,
        lambda: _alarms(arguments.home, environ),
        lambda: _watched(arguments.home, environ),
        terminal.line,
        port=arguments.port,
        with_browser=not arguments.no_browser,
    )
    return 0


def _export(arguments: argparse.Namespace) -> int:
    if not arguments.export:
        raise WrongCallError("--out needs --export", "name the session: --export SESSION")
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    words = [arguments.export, "--full", "--format", "html", "--out", arguments.out]
    return export.run(
        parser.parse_args([*words, *(["--home", arguments.home] if arguments.home else [])])
    )


def _alarms(path: str | None, environ: Mapping[str, str]) -> list[Alarm]:
    """Return doctor's findings about all installed hooks, and errors in the settings."""
    settings = notices(find_location(path, environ).home)
    alarms = [Alarm("settings", text, "correct or remove it") for text in settings]
    if os.path.exists(program_paths(environ).ledger_file):
        wrong = [
            finding
            for examined in examine(None, environ)
            for finding in examined.findings
            if finding.state == WRONG
        ]
        alarms += [
            Alarm(finding.about, finding.text, finding.mend)
            for finding in wrong
            if finding.text not in settings
        ]
    return alarms


def _watched(path: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return the files whose change may change the findings."""
    home, ledger_file = find_location(path, environ).home, program_paths(environ).ledger_file
    try:
        records = list(InstallLedger.read(ledger_file).records.values())
    except SessionMemoryError:  # one of the alarms
        records = []
    installed = [record.settings_file for record in records if record.settings_file]
    return [home.config_file, *home.rules_files, home.log_file, str(ledger_file), *installed]


def _port(text: str) -> int:
    """Return a port of this machine. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"{text!r} is not a port: use 1 to 65535")
    return int(text)
