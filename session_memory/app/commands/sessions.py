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
from ...common.text.format import shorten_both
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...history.archives.list import former_names
from ...history.store.values import STATUSES
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.transcripts.sessions import (
    AmbiguousSessionError,
    FoundSession,
    UnknownSessionError,
    choose,
    find_sessions,
)
from .arguments import OnlyForPeopleError, add_common

SUMMARY = "list the sessions of this project, or conversations with numbers, latest first"
LIMIT = 20
TITLE_CHARACTERS = 80
SHORT_ID = 8
COUNTED = 500  # Limit the count of entries, so a session of a gigabyte is listed just as fast.
_OF_CONVERSATIONS = ("conversations", "status", "project", "session", "since", "until", "shared")
_MEANINGS = (  # of STATUSES
    "may continue",
    "has ended",
    "memories are being made",
    "memories were made",
    "too short, for example",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all(parser, "list the sessions of all projects, not only this one")
    implied = (
        "list single conversations with their numbers, from the store; implied by --status, "
        "--project, --session, --since, --until and --team"
    )
    parser.add_argument("--conversations", action="store_true", help=implied)
    statuses = ", ".join(
        [f"{status} ({meaning})" for status, meaning in zip(STATUSES, _MEANINGS, strict=True)]
    )
    statuses = f"only conversations with this status: {statuses}"
    parser.add_argument("--status", metavar="STATUS", choices=STATUSES, default="", help=statuses)
    add_common(parser, filter_limit=LIMIT, shared=True, private=True)


def add_all(parser: argparse.ArgumentParser, help: str) -> None:
    """Add `--all`."""
    parser.add_argument("--all", action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    given = vars(arguments)
    if any(given[name] for name in _OF_CONVERSATIONS):
        from ._conversations import list_conversations

        return list_conversations(arguments)
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


class SessionChoice:
    """The choice of a session by a word: an id or its beginning, a name or words of it.

    A word that matches none may be a conversation's number or a memory's id."""

    def __init__(
        self,
        word: str,
        arguments: argparse.Namespace,
        environ: Mapping[str, str],
        *,
        with_private: bool = False,
    ) -> None:
        self._word = word
        self._arguments = arguments
        self._environ = environ
        self._with_private = with_private
        self._here = known_sessions(arguments, environ, with_private=with_private)

    def session(self) -> FoundSession:
        """Return the session, if possible one that `--home` and `--all` select.

        Raises UnknownSessionError, OSError."""
        return self.here() or self.anywhere()

    def here(self) -> FoundSession | None:
        """Return the session among those that `--home` and `--all` select; None if none matches.

        Raises AmbiguousSessionError."""
        try:
            return choose(self._here, self._word)
        except AmbiguousSessionError:
            raise
        except UnknownSessionError:
            return None

    def anywhere(self) -> FoundSession:
        """Return the session of any project, or the one behind a number or a memory's id.

        Raises UnknownSessionError, OSError."""
        from .opened_store import session_behind

        arguments, stored = self._arguments, session_behind(self._word, self._arguments)
        everywhere = self._here
        if not (arguments.all or arguments.home):
            everywhere = find_sessions(
                None,
                True,
                self._environ,
                with_private=self._with_private,
                former_names=former_names,
            )
        try:
            return choose(everywhere, stored or self._word)
        except AmbiguousSessionError:
            raise
        except UnknownSessionError:
            if stored:
                hint = f"to read its text in the store: session-memory read {self._word}"
                raise UnknownSessionError(
                    f"the transcript of {self._word!r} is not on this machine", hint
                ) from None
            choose(self._here, self._word)  # raises, with the nearest names of this project
            raise


def is_own(session: FoundSession, environ: Mapping[str, str]) -> bool:
    return session.id == session.runtime.own_session_id(environ)


@dataclass(frozen=True)
class ListedSessions(Result):
    """The sessions, the latest first; `is_cut` means that there are more."""

    sessions: list[FoundSession]
    environ: Mapping[str, str]
    is_cut: bool = False

    @cached_property
    def messages(self) -> list[tuple[int, str]]:
        """The number of messages of each, up to COUNTED, and its last request, '' unless its name
        is its first one."""
        return [_messages_of(session) for session in self.sessions]

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
        for session, (count, later) in zip(self.sessions, self.messages):
            number = f"{count}{'+' if count >= COUNTED else ''}"
            runtime = (
                f"{session.runtime.name}{' (this one)' if is_own(session, self.environ) else ''}"
            )
            when = age(time.time() - session.last_at)
            title = shorten_both(for_people(session.name), later, TITLE_CHARACTERS)
            rows.append((session.id[:length], session.project, runtime, number, when, title))
        terminal.table(rows, [3])
        if self.is_cut:
            terminal.line(
                f"These are the latest {len(self.sessions)}; there are more: --limit N shows them."
            )

    def as_json(self) -> dict[str, Any]:
        listed = [
            {**_as_json(session, *messages), "is_this_one": is_own(session, self.environ)}
            for session, messages in zip(self.sessions, self.messages)
        ]
        return {"sessions": listed, "more": self.is_cut}


def _messages_of(session: FoundSession) -> tuple[int, str]:
    entries = session.readable_entries(COUNTED)
    count = len({entry.message_id or entry.offset for entry in entries})
    return count, session.later_request(entries)


def _as_json(session: FoundSession, count: int, later_request: str) -> dict[str, Any]:
    return {
        "name": session.name,
        "last_request": later_request or None,
        "id": session.id,
        "runtime": session.runtime.name,
        "project": session.start if session.has_text else None,
        "messages": count,
        "last_message_at": iso_time(session.last_at),
        "modified": iso_time(session.modified),
        "at_work": session.is_at_work(time.time()),
        "bytes": session.size,
        "path": session.session.path if session.has_text else None,  # a path names a directory
    }
