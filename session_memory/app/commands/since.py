"""`session-memory since [WHEN]`: the work of all agents since then, and what waits for you."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...common.text.format import one_line
from ...common.text.timestamps import midnight
from ...history.patterns.project_work import WorkSince
from ...history.store.values import Filter
from ...sessions.transcripts.sessions import UnknownSessionError
from ..active_sessions import ActiveSession
from ..labels import project_of, quoted
from ..projects import is_in_project, limited_to
from ..session_reader import SessionReader
from ._since_view import DoneWork, WaitingSession
from .arguments import NO_LIMIT, add_home, add_private, add_project, point_in_time, positive
from .opened_store import OpenStore, check_names, on_store, options_of, refresh

if TYPE_CHECKING:
    from ...history.patterns.work import WorkedSession

SUMMARY = "show on one screen what your agents did since last evening, and what waits for you"
LINES = 40
EVENING = 18 * 3600  # seconds after midnight
ASKED, STOPPED = "asked you", "stopped midway"
TEXT_CHARACTERS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "when",
        metavar="WHEN",
        nargs="?",
        type=point_in_time,
        help="yesterday, monday, 3h, 2d, 2026-02-01 (default: 18:00 yesterday)",
    )
    add_project(parser)
    parser.add_argument("--markdown", action="store_true", help="print it as Markdown")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=LINES,
        help=f"use about N lines; the most productive sessions come first ({LINES})",
    )
    add_private(parser)
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    """Print the work since a time; return 1 if there is none. Raises SessionMemoryError."""
    now = time.time()
    since = arguments.when
    if since is None:
        since = round((midnight(now, -1) + EVENING) * 1000)
    refresh(opened, with_sub_agents=True)
    wanted = _filter(opened, arguments)._replace(since=since)
    work = WorkSince.read(opened.store, opened.location.home, wanted)
    if not work.sessions and arguments.project:
        check_names(opened, wanted._replace(since=None))
    waiting = _waiting(arguments.home, wanted, work.sessions, now)
    opened.terminal.show(
        DoneWork(
            since,
            now,
            work,
            waiting,
            arguments.limit,
            options_of(arguments),
            is_markdown=arguments.markdown,
        )
    )
    return 0 if work.sessions or waiting else 1


def _filter(opened: OpenStore, arguments: argparse.Namespace) -> Filter:
    wanted = Filter(limit=NO_LIMIT)
    if arguments.project is None:
        return wanted
    return limited_to(arguments.project, wanted, opened.location.home)


def _waiting(
    home: str | None, wanted: Filter, every: Sequence[WorkedSession], now: float
) -> list[WaitingSession]:
    """Return the open sessions that wait for their user, then those that ended with a question or
    in the middle of a turn."""
    open_sessions = _open_sessions(home, now)
    works = {work.id: work for work in every}
    waiting = []
    for session in open_sessions:
        work = works.get(session.id)
        # one that did nothing since then may still wait
        if session.state.needs_user and (work or is_in_project(session.cwd, wanted)):
            waiting.append(_open_row(session, work))
    known = {session.id for session in open_sessions}
    ended = [work for work in every if work.id not in known]
    ended.sort(key=lambda work: (not work.question, -work.last_at))
    return [
        *waiting,
        *[_ended_row(work) for work in ended if work.question or work.is_unfinished],
    ]


def _open_sessions(home: str | None, now: float) -> list[ActiveSession]:
    """Return the open sessions, those that need their user first."""
    reader = SessionReader(home, os.environ, delivery_seconds=0.0)
    try:
        sessions = reader.read(now)
    except UnknownSessionError:  # that home has no sessions of its own
        return []
    shown = [session for session in sessions if not session.state.has_ended]
    return sorted(shown, key=lambda each: (each.state.rank, -each.state.since))


def _open_row(session: ActiveSession, work: WorkedSession | None) -> WaitingSession:
    state = session.state
    question = quoted(work.question, TEXT_CHARACTERS) if work else ""
    text = session.doing if state.names_call or state.reason else ""
    text = text or f'"{question or session.request or session.name}"'
    since = state.since or session.last_at
    return WaitingSession(state.name, since, session.place, text, session.id)


def _ended_row(work: WorkedSession) -> WaitingSession:
    place = one_line(project_of(work.conversation.cwd)) or "-"
    state = ASKED if work.question else STOPPED
    first, last = work.titles
    text = f'"{quoted(work.question or last or first, TEXT_CHARACTERS)}"'
    return WaitingSession(state, work.last_at / 1000, place, text, work.id)
