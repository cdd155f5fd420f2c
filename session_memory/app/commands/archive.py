"""`session-memory archive`: writes the archive of a session, or of all sessions of a home."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import Terminal
from ...common.text.format import counted
from ...history.archives.list import KnownArchives, is_private_path, settle
from ...history.archives.writer import ArchiveSource, archive_session
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.sessions import FoundSession, find_sessions, unreadable_projects
from .arguments import add_common
from .sessions import chosen_session

SUMMARY = "save conversations as Markdown in the home's conversations/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="its id or its beginning, or a word of its title",
    )
    parser.add_argument("--all", action="store_true", help="every session of the home")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the sessions, and write nothing"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    if not arguments.session and not arguments.all:
        raise WrongCallError(
            "no session was named", "name one by its name, title or id, or use --all"
        )
    is_all = arguments.all
    found = find_sessions(
        arguments.home, is_all and not arguments.home, os.environ, with_private=is_all
    )
    chosen = found if is_all else [chosen_session(arguments.session, arguments, os.environ)]
    if arguments.dry_run:
        for one in chosen:
            terminal.line(f"  {one.described()}")
        terminal.line(
            f"{counted(len(chosen), 'conversation')} would be written, those in which something "
            f"was said."
        )
        would = [{"session": one.id, "name": one.name, "archive": None} for one in chosen]
        terminal.result({"dry_run": True, "sessions": would})
        return 0
    rules = {one.home.config_file: Privacy(os.environ, one.home) for one in chosen}
    for directory, config_file in {
        (one.home.conversations_dir, one.home.config_file) for one in chosen
    }:
        settle(directory, rules[config_file])
    known = KnownArchives()
    results = [
        _archive(one, rules[one.home.config_file], known, f"{number}/{len(chosen)}", terminal)
        for number, one in enumerate(chosen, 1)
    ]
    results = [result for result in results if not is_private_path(result["archive"] or "")]
    for path, why in unreadable_projects(arguments.home, os.environ) if is_all else ():
        terminal.note(f"{terminal.short(path)}: {why}")
        results.append({"session": "", "name": path, "archive": None, "problem": why})
    failed = [result for result in results if "problem" in result]
    written = [result for result in results if result.get("archive")]
    terminal.line(
        f"{counted(len(written), 'conversation')} "
        f"kept{f', {len(failed)} could not be' if failed else ''}."
    )
    terminal.result({"sessions": results})
    return 1 if failed else 0


def _archive(
    one: FoundSession, privacy: Privacy, known: KnownArchives, progress: str, terminal: Terminal
) -> dict[str, Any]:
    """Return the result for a session: the path of its archive, None if nothing was said in it; or
    the problem. A path in the private folder is not shown."""
    result: dict[str, Any] = {"session": one.id, "name": one.name, "archive": None}
    try:
        with terminal.working(f"{progress} {one.name}"):
            source = ArchiveSource(one.id, one.session.path, one.runtime, name=one.session.name)
            directory, settings = one.home.conversations_dir, one.home.settings()
            result["archive"] = archive_session(
                source, directory, settings, time.time(), privacy=privacy, known=known
            )
    except Exception as error:  # it is that session's, and no other's
        is_foreseen = isinstance(error, SessionMemoryError | OSError)
        result["problem"] = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
        terminal.note(f"{one.name}: {result['problem']}")
    if result["archive"] and not is_private_path(result["archive"]):
        terminal.line(f"  {terminal.short(result['archive'])}")
    return result
