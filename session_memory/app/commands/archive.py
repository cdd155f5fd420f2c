"""`session-memory archive`: writes the archive of a session, or of all sessions of a home."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, shortened_id
from ...history.archives.list import KnownArchives, is_private_path, settle
from ...history.archives.writer import ArchiveSource, archive_transcript
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.sessions import FoundSession, find_sessions, unreadable_projects
from ._picker import picked_session
from .arguments import add_common
from .sessions import SessionChoice

SUMMARY = "save conversations as Markdown in the home's conversations/"
HIDDEN = "a hidden session"  # instead of its name
NOT_KEPT = "it could not be archived; session-memory config shows the rules that hide sessions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="its id, the beginning of its id, or a word of its title",
    )
    parser.add_argument("--all", action="store_true", help="every session of the home")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the sessions without writing anything"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    if not arguments.session and not arguments.all:
        hint = "name a session by its name, title or id, or use --all"
        arguments.session = picked_session(arguments, hint)
    chosen = (
        find_sessions(arguments.home, not arguments.home, os.environ, with_private=True)
        if arguments.all
        else [SessionChoice(arguments.session, arguments, os.environ).session()]
    )
    visible = _visible(chosen, arguments) if arguments.all else chosen
    if arguments.dry_run:
        terminal.show_paged(ArchivePreview(visible))
        return 0
    names = {session.session.path: session.name for session in visible}
    results = _archive_all(chosen, terminal, names)
    unreadable = unreadable_projects(arguments.home, os.environ) if arguments.all else ()
    for path, why in unreadable:
        terminal.note(f"{terminal.short(path)}: {why}")
        results.append(ArchiveOutcome("", path, None, why))
    written = Archived(results)
    terminal.show(written)
    return 1 if written.failed else 0


def archive_sessions(ids: Collection[str], home: str | None) -> None:
    """Archive the sessions with these ids of an agent's home, else of all the person's projects.

    Raises SessionMemoryError if one could not be archived, after archiving the others."""
    every = find_sessions(home, not home, os.environ, with_private=True)
    chosen = [session for session in every if session.id in ids]
    names = {session.session.path: session.name for session in chosen}
    outcomes = _archive_all(chosen, Terminal(os.environ, is_json=True), names)
    problems = [outcome.problem for outcome in outcomes if outcome.problem]
    gone = sorted(set(ids) - {session.id for session in chosen})
    problems += [f"session {shortened_id(id)}: its transcript is gone" for id in gone]
    if problems:
        hint = "the store still has its messages: export the session instead" if gone else ""
        raise SessionMemoryError("; ".join(problems), hint)


@dataclass(frozen=True)
class ArchiveOutcome:
    """A session's archive, or the problem with it.

    A session without messages has no archive. A path in the private folder is not shown.
    `session` is '' for a hidden session, and for a project that cannot be read."""

    session: str
    name: str
    archive: str | None
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as values for JSON, without `problem` if there is none."""
        values = vars(self)
        return values if self.problem else {key: values[key] for key in values if key != "problem"}


@dataclass(frozen=True)
class Archived(Result):
    """The outcomes of all sessions. Each was already printed when it was known."""

    outcomes: list[ArchiveOutcome]

    @property
    def failed(self) -> int:
        """The number of sessions that could not be archived."""
        return sum(bool(outcome.problem) for outcome in self.outcomes)

    def show(self, terminal: Terminal) -> None:
        written = sum(bool(outcome.archive) for outcome in self.outcomes)
        failed = f"; {self.failed} could not be kept" if self.failed else ""
        terminal.line(f"{counted(written, 'conversation')} kept{failed}.")

    def as_json(self) -> dict[str, Any]:
        return {"sessions": [outcome.as_json() for outcome in self.outcomes]}


@dataclass(frozen=True)
class ArchivePreview(Result):
    """The sessions that would be archived."""

    sessions: list[FoundSession]

    def show(self, terminal: Terminal) -> None:
        for session in self.sessions:
            terminal.line(f"  {session.described()}")
        terminal.line(
            f"{counted(len(self.sessions), 'conversation')} would be written: "
            "every one that contains a message."
        )

    def as_json(self) -> dict[str, Any]:
        sessions = [ArchiveOutcome(each.id, each.name, None).as_json() for each in self.sessions]
        return {"dry_run": True, "sessions": sessions}


def _visible(chosen: list[FoundSession], arguments: argparse.Namespace) -> list[FoundSession]:
    """Return the sessions that may be shown, of all that are archived, as they may be shown."""
    rules = {session.home.config_file: Privacy(os.environ, session.home) for session in chosen}
    if not any([rules[each.home.config_file].has_rules(each.start) for each in chosen]):
        return chosen
    return find_sessions(arguments.home, not arguments.home, os.environ)


def _archive_all(
    chosen: list[FoundSession], terminal: Terminal, names: Mapping[str, str]
) -> list[ArchiveOutcome]:
    """Archive the sessions; return the results, leaving out private sessions.

    `names` has the visible names of sessions, by their transcripts' paths."""
    rules = {session.home.config_file: Privacy(os.environ, session.home) for session in chosen}
    for directory, config_file in {
        (session.home.conversations_dir, session.home.config_file) for session in chosen
    }:
        settle(directory, rules[config_file])
    known = KnownArchives()
    results = []
    for number, session in enumerate(chosen, 1):
        name = names.get(session.session.path, HIDDEN)
        privacy = rules[session.home.config_file]
        with terminal.working(f"{number}/{len(chosen)} {name}"):
            path, problem = _archive(session, privacy, known)
        if problem:
            # an error may quote a path with the session's id or title
            problem = problem if session.session.path in names else NOT_KEPT
            terminal.note(f"{name}: {problem}")
        if path and not is_private_path(path):
            terminal.line(f"  {terminal.short(path)}")
        is_visible = session.session.path in names and not is_private_path(path or "")
        if is_visible or problem:
            results.append(ArchiveOutcome(session.id if is_visible else "", name, path, problem))
    return results


def _archive(
    session: FoundSession, privacy: Privacy, known: KnownArchives
) -> tuple[str | None, str]:
    """Archive a session; return the path, None without messages, and the problem, if any."""
    try:
        source = ArchiveSource(
            session.id, session.session.path, session.runtime, name=session.session.name
        )
        directory, settings = session.home.conversations_dir, session.home.settings()
        written = archive_transcript(
            source, directory, settings, time.time(), privacy=privacy, known=known
        )
    except Exception as error:  # it is that session's, and no other's
        is_foreseen = isinstance(error, SessionMemoryError | OSError)
        return None, (is_foreseen and str(error)) or f"{type(error).__name__}: {error}"
    return written, ""
