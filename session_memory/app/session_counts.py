"""The number of open sessions in each state, for a status bar that asks every few seconds.

Only the ends of open sessions' transcripts are read."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..awareness.activity.status_line import WaitingSessions
from ..common.system.terminal import Result, Terminal
from ..common.text.timestamps import midnight
from ..sessions.settings.homes import person_home
from ..sessions.settings.program import leave_session, stay_with_version
from ..sessions.state_reader import StateReader
from ..sessions.states import ASKS, BACKGROUND, GONE, UNKNOWN, WAITS, WORKING
from ..sessions.transcripts.sessions import UnknownSessionError, find_sessions

NIGHT_HOURS = 12
# for one session and for several
_WORDS = {
    WAITS: ("waits", "wait"),
    ASKS: ("asks", "ask"),
    WORKING: ("works", "work"),
    BACKGROUND: ("in the background", "in the background"),
    UNKNOWN: ("unknown", "unknown"),
    GONE: ("without its worktree", "without their worktree"),
}


def active_since(now: float) -> float:
    """Return the time since which a session counts as active: the start of today, or at night of
    yesterday. In seconds since the epoch."""
    return min(midnight(now), now - NIGHT_HOURS * 3600)


def main(words: list[str]) -> None:
    """Count the sessions for the status lines, which read the result."""
    stay_with_version()
    leave_session()
    counts = SessionCounts.read(None, time.time(), all_projects=True)
    WaitingSessions(person_home(os.environ).waiting_file).store(counts.needing)


@dataclass(frozen=True)
class SessionCounts(Result):
    """The number of open sessions by state, and the ids of those that need their user."""

    counts: dict[str, int]
    needing: tuple[str, ...] = ()

    @classmethod
    def read(cls, home: str | None, now: float, *, all_projects: bool) -> SessionCounts:
        """Count the sessions in the agent home `home`, else of all runtimes of the user.

        Raises UnknownSessionError if `home` has no sessions, OSError."""
        reader = StateReader(os.environ)
        reader.list_processes()
        since = min(active_since(now), reader.first_began(now))
        try:
            sessions = find_sessions(home, all_projects, os.environ, since=since)
        except UnknownSessionError:
            if home:
                raise
            sessions = []  # no runtime has sessions yet
        opened = reader.open_states(sessions, now)
        states = Counter(state.name for _, state in opened)
        needing = tuple(session.id for session, state in opened if state.needs_user)
        return cls({name: states[name] for name in _WORDS}, needing)

    @property
    def text(self) -> str:
        """The counts in words, such as `2 wait, 1 asks, 3 work`; '' without open sessions."""
        parts = [
            f"{count} {_WORDS[name][count > 1]}" for name, count in self.counts.items() if count
        ]
        return ", ".join(parts)

    def show(self, terminal: Terminal) -> None:
        if self.text:
            terminal.line(self.text)

    def as_json(self) -> dict[str, Any]:
        needing = self.counts[WAITS] + self.counts[ASKS]
        kind = "waits" if needing else "works" if self.counts[WORKING] else "idle"
        return {"text": self.text, "class": kind, "counts": self.counts}

    @property
    def indent(self) -> None:
        return None
