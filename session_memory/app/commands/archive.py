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
    chosen = (
        find_sessions(arguments.home, not arguments.home, os.environ, with_private=True)
        if arguments.all
        else [chosen_session(arguments.session, arguments, os.environ)]
    )
    if arguments.dry_run:
        return _preview(chosen, terminal)
    results = _archive_all(chosen, terminal)
    unreadable = unreadable_projects(arguments.home, os.environ) if arguments.all else ()
    for path, why in unreadable:
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


def _preview(chosen: list[FoundSession], terminal: Terminal) -> int:
    """Show the sessions that would be archived, and write nothing."""
    for session in chosen:
        terminal.line(f"  {session.described()}")
    terminal.line(
        f"{counted(len(chosen), 'conversation')} would be written, those in which something "
        f"was said."
    )
    would = [{"session": session.id, "name": session.name, "archive": None} for session in chosen]
    terminal.result({"dry_run": True, "sessions": would})
    return 0


def _archive_all(chosen: list[FoundSession], terminal: Terminal) -> list[dict[str, Any]]:
    """Archive the sessions; return the results, leaving out private sessions."""
    rules = {session.home.config_file: Privacy(os.environ, session.home) for session in chosen}
    for directory, config_file in {
        (session.home.conversations_dir, session.home.config_file) for session in chosen
    }:
        settle(directory, rules[config_file])
    known = KnownArchives()
    results = [
        _archive(
            session, rules[session.home.config_file], known, f"{number}/{len(chosen)}", terminal
        )
        for number, session in enumerate(chosen, 1)
    ]
    return [result for result in results if not is_private_path(result["archive"] or "")]


def _archive(
    one: FoundSession, privacy: Privacy, known: KnownArchives, progress: str, terminal: Terminal
) -> dict[str, Any]:
    """Return the result for a session: the path of its archive, or the problem.

    The path is None if the session has no message. A path in the private folder is not shown."""
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
