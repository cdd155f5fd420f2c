"""`agents --watch`: shows the sessions again at each change, and sleeps until there is one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any

from ...common.system.terminal import Result, Terminal, print_note
from ..active_sessions import ActiveSession
from ..notices import Notices
from ..session_reader import SessionReader
from ..upkeep.watch import wake_ups
from ._agents_view import AgentsView, agent_json
from ._team_reader import TeamAnswer

QUIET_MILLISECONDS = 150
LONGEST_MILLISECONDS = 900
POLL_SECONDS = 2.0  # between two looks at the processes, which write no file when they end


def watch(reader: SessionReader, view: AgentsView, terminal: Terminal) -> int:
    """Show the sessions until SIGINT or SIGTERM: on a terminal all, else a line per change."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    shown: dict[str, ActiveSession] = {}
    problem = ""
    with (
        closing(Notices(terminal.environ, print_note)) as notices,
        closing(view.team) if view.team else nullcontext() as team,
        terminal.redrawn() if terminal.is_screen else nullcontext() as show,
    ):
        for sessions in _readings(reader, stop, terminal.log):
            if show:
                show(view.of(sessions, time.time()))
            answer = team.latest() if team else TeamAnswer()
            every = [*sessions, *answer.without({each.id for each in sessions}).sessions]
            for change in _changes(shown, every):
                if not show:
                    terminal.show(change)
            if answer.problem not in ("", problem) and not show:
                print_note(answer.problem)
            problem = answer.problem
            notices.follow(sessions)
            if reader.covers_all:
                notices.claim()  # after the first reading, which sends nothing
    return 0


def _readings(
    reader: SessionReader, stop: threading.Event, note: Callable[[str], None]
) -> Iterator[list[ActiveSession]]:
    """Yield the sessions now, and again when a file or a process of theirs may have changed."""
    for _ in wake_ups(
        reader.directories,
        stop,
        lambda: POLL_SECONDS,
        note,
        QUIET_MILLISECONDS,
        LONGEST_MILLISECONDS,
    ):
        yield reader.read(time.time())


@dataclass(frozen=True)
class StateChange(Result):
    """A session whose state changed, and its state before; '' for a session that is new."""

    session: ActiveSession
    before: str

    def show(self, terminal: Terminal) -> None:
        session = self.session
        parts = [session.state.name, session.place, session.runtime, session.who]
        line = "  ".join(filter(None, [*parts, session.doing]))
        terminal.line(f"{time.strftime('%H:%M:%S')}  {line}")

    def as_json(self) -> dict[str, Any]:
        return {**agent_json(self.session), "before": self.before or None}

    @property
    def indent(self) -> None:
        return None


def _changes(
    shown: dict[str, ActiveSession], sessions: list[ActiveSession]
) -> Iterator[StateChange]:
    """Yield the changes since the sessions `shown`, which are brought up to date."""
    gone = {id: each for id, each in shown.items() if id not in {now.id for now in sessions}}
    ended = [
        each._replace(state=type(each.state)(since=time.time()))
        for each in gone.values()
        if not each.who  # the team's store cannot tell
    ]
    for session in [*sessions, *ended]:
        before = shown.get(session.id)
        is_same = before is not None and before.state.news == session.state.news
        if not is_same and (before is not None or not session.state.has_ended):
            yield StateChange(session, before.state.name if before else "")
        shown[session.id] = session
    for id in gone:
        del shown[id]
