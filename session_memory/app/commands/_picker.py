"""Asks which session is meant, if a command at a terminal names none."""

from __future__ import annotations

import argparse
import os
import time

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import Terminal
from ...common.text.timestamps import age
from ...history.archives.list import former_names
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.transcripts.sessions import FoundSession, find_sessions

MOST = 50
TITLE_CHARACTERS = 80
LISTED = "name it by its id or title: session-memory sessions lists them"


QUESTION = "Which session? A number, an id or words of a title:"


def picked_session(
    arguments: argparse.Namespace, hint: str = LISTED, question: str = QUESTION
) -> str:
    """Return the id of the session that a person chooses, or the words that they type for it.

    Only a person at a terminal is asked. Raises WrongCallError with the `hint` in a pipe, with
    `--json` and for agents, SessionMemoryError if nothing is chosen or no session exists."""
    is_json = arguments.json or getattr(arguments, "format", "") == "json"
    terminal = Terminal(os.environ, is_json=is_json)
    if not terminal.can_ask() or is_started_by_agent(os.environ):
        raise WrongCallError("no session was named", hint)
    sessions = _latest(arguments)
    if not sessions:
        raise SessionMemoryError("there are no sessions yet", "start one of your agents")
    rows = [("SESSION", "RUNTIME", "PROJECT", "LAST ACTIVE"), *map(_row, sessions)]
    chosen = terminal.choose(rows, question)
    if isinstance(chosen, int):
        return sessions[chosen].id
    if not chosen:
        raise SessionMemoryError("no session was chosen")
    return chosen


def _latest(arguments: argparse.Namespace) -> list[FoundSession]:
    """Return the latest sessions: first this project's, then all others."""
    sessions: dict[str, FoundSession] = {}
    with_private = getattr(arguments, "include_private", False)
    for everywhere in (False, not arguments.home):
        for session in find_sessions(
            arguments.home,
            everywhere,
            os.environ,
            with_private=with_private,
            most=MOST,
            former_names=former_names,
        ):
            sessions.setdefault(session.id, session)
    return list(sessions.values())[:MOST]


def _row(session: FoundSession) -> tuple[str, str, str, str]:
    ago = age(time.time() - session.last_at)
    return session.title(TITLE_CHARACTERS), session.runtime.TITLE, session.project, ago
