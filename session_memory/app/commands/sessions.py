"""`session-memory sessions`: the sessions, the latest first."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...common.system.terminal import Result, Terminal
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...history.archives.list import former_names
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.transcripts.sessions import (
    AmbiguousSessionError,
    FoundSession,
    UnknownSessionError,
    choose,
    find_sessions,
)
from .arguments import OnlyForPeopleError, add_common

SUMMARY = "list the sessions of this project, latest first"
LIMIT = 20
SHORT_ID = 8
COUNTED = 500  # Limit the count of entries, so a session of a gigabyte is listed just as fast.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all(parser)
    add_common(parser, limit=LIMIT, private=True)


def add_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="list the sessions of all projects, not only this one"
    )


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    if arguments.include_private and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private")
    most = arguments.limit + 1
    listed = known_sessions(
        arguments, os.environ, with_private=arguments.include_private, most=most
    )
    is_cut = len(listed) > arguments.limit
    terminal.show(ListedSessions(listed[: arguments.limit], os.environ, is_cut))
    return 0


def known_sessions(
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
    *,
    with_private: bool,
    most: int | None = None,
) -> list[FoundSession]:
    """Return the `most` latest sessions that `--home` and `--all` select.

    Raises SessionMemoryError, OSError."""
    return find_sessions(
        arguments.home,
        arguments.all,
        environ,
        with_private=with_private,
        most=most,
        former_names=former_names,
    )


def chosen_session(
    word: str,
    arguments: argparse.Namespace,
    environ: Mapping[str, str],
    *,
    with_private: bool = False,
) -> FoundSession:
    """Return the session for a word: an id or its beginning, a name or words of it.

    Sessions of this project come before others. A word that matches none may be a conversation's
    number or a memory's id. Raises SessionMemoryError, OSError."""
    here = known_sessions(arguments, environ, with_private=with_private)
    try:
        return choose(here, word)
    except AmbiguousSessionError:
        raise
    except UnknownSessionError as unknown:
        from .opened_store import session_behind

        stored = session_behind(word, arguments)
        everywhere = here
        if not (arguments.all or arguments.home):
            everywhere = find_sessions(
                None, True, environ, with_private=with_private, former_names=former_names
            )
        try:
            return choose(everywhere, stored or word)
        except AmbiguousSessionError:
            raise
        except UnknownSessionError:
            if stored:
                hint = f"to read its text in the store: session-memory show {word}"
                raise UnknownSessionError(
                    f"the transcript of {word!r} is not on this machine", hint
                ) from None
            raise unknown from None


def is_own(session: FoundSession, environ: Mapping[str, str]) -> bool:
    return session.id == environ.get(session.runtime.OWN_ID_VARIABLE)


@dataclass(frozen=True)
class ListedSessions(Result):
    """The sessions, the latest first; `is_cut` means that there are more."""

    sessions: list[FoundSession]
    environ: Mapping[str, str]
    is_cut: bool = False

    @cached_property
    def counts(self) -> list[int]:
        """The number of messages of each, up to COUNTED."""
        return [session.message_count(COUNTED) for session in self.sessions]

    def show(self, terminal: Terminal) -> None:
        if not self.sessions:
            terminal.line("No sessions yet. Start one of your agents, then run this command again.")
            return
        if all(session.session.is_elsewhere for session in self.sessions):
            terminal.line(
                "This directory's project has no session yet. These are sessions of all projects:"
            )
        length, ids = SHORT_ID, {session.id for session in self.sessions}
        while len({id[:length] for id in ids}) < len(ids):  # they must be distinguishable
            length += 1
        rows = [("ID", "PROJECT", "RUNTIME", "MESSAGES", "AGE", "TITLE")]
        for session, count in zip(self.sessions, self.counts):
            number = f"{count}{'+' if count >= COUNTED else ''}"
            runtime = (
                f"{session.runtime.name}{' (this one)' if is_own(session, self.environ) else ''}"
            )
            when, title = age(time.time() - session.modified), for_people(session.name)
            rows.append((session.id[:length], session.project, runtime, number, when, title))
        terminal.table(rows, [3])
        if self.is_cut:
            terminal.line(
                f"These are the latest {len(self.sessions)}; there are more: --limit N shows them."
            )

    def as_json(self) -> dict[str, Any]:
        listed = [
            {**_as_json(session, count), "is_this_one": is_own(session, self.environ)}
            for session, count in zip(self.sessions, self.counts)
        ]
        return {"sessions": listed, "more": self.is_cut}


def _as_json(session: FoundSession, count: int) -> dict[str, Any]:
    return {
        "name": session.name,
        "id": session.id,
        "runtime": session.runtime.name,
        "project": session.start if session.has_text else None,
        "messages": count,
        "modified": iso_time(session.modified),
        "at_work": session.is_at_work(time.time()),
        "bytes": session.size,
        "path": session.session.path if session.has_text else None,  # a path names a directory
    }
