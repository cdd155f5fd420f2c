"""The sessions of `agents` as rows, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ..active_sessions import ActiveSession

LEAST_REQUEST = 16  # characters of a request, below which it is left out


@dataclass(frozen=True)
class AgentsView:
    """A selection of sessions: at most `limit`, and ended ones if `with_ended`."""

    limit: int
    with_ended: bool = False

    def of(self, sessions: Sequence[ActiveSession], now: float) -> Agents:
        """Return the sessions in the order of their states, the latest first."""
        ordered = sorted(sessions, key=lambda each: (each.state.rank, -each.state.since))
        shown = [each for each in ordered if self.with_ended or not each.state.has_ended]
        return Agents(shown[: self.limit], len(shown), len(ordered) - len(shown), now)


@dataclass(frozen=True)
class Agents(Result):
    """The sessions; `total` counts them with those beyond the limit, `ended` those left out."""

    sessions: list[ActiveSession]
    total: int
    ended: int
    now: float

    def show(self, terminal: Terminal) -> None:
        rows = [_row(each, self.now) for each in self.sessions]
        widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
        for each, row in zip(self.sessions, rows):
            fixed = "  ".join(
                cell.rjust(width) if at == 1 else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths))
            )
            line = "  ".join([fixed, *_last_cells(each, terminal.width - len(fixed) - 2)]).rstrip()
            terminal.line(_painted(terminal, each, line))
            for collision in each.collisions:
                terminal.note(collision)
        if not self.sessions:
            terminal.line("No agent is open on this machine.")
        if self.total > len(self.sessions):
            terminal.line(
                f"These are {len(self.sessions)} of {self.total}: --limit N shows more of them."
            )
        if self.ended:
            terminal.line(f"{counted(self.ended, 'session')} ended today: --all lists them.")

    def as_json(self) -> dict[str, Any]:
        return {
            "agents": [agent_json(each) for each in self.sessions],
            "more": self.total - len(self.sessions),
            "ended_sessions": self.ended,
        }


def agent_json(session: ActiveSession) -> dict[str, Any]:
    """Return a session as JSON."""
    state = session.state
    return {
        "id": session.id,
        "name": session.name,
        "runtime": session.runtime,
        "project": session.project or None,
        "worktree": session.worktree or None,
        "branch": session.branch or None,
        "directory": session.cwd or None,
        "state": state.name,
        "since": iso_time(state.since) if state.since else None,
        "waits": state.needs_user,
        "tool": state.tool or None,
        "argument": for_people(state.argument) or None,
        "reason": state.reason or None,
        "request": session.request or None,
        "edits": list(session.files),
        "collisions": list(session.collisions),
        "last_active": iso_time(session.last_at),
    }


def _row(session: ActiveSession, now: float) -> tuple[str, str, str, str]:
    since = session.state.since or session.last_at
    return (session.state.name, age(now - since), session.place, session.runtime)


def _last_cells(session: ActiveSession, room: int) -> list[str]:
    """Return the request and what the session does, in so many characters."""
    does = session.doing
    if len(does) > room:
        return [shorten(does, room)]
    left = room - len(does) - 4  # quotes, and the space between
    name = one_line(session.request or session.name)
    request = f'"{shorten(name, left)}"' if name and left >= LEAST_REQUEST else ""
    return [part for part in (request, does) if part]


def _painted(terminal: Terminal, session: ActiveSession, line: str) -> str:
    state = session.state
    if state.needs_user:
        return terminal.paint("yellow", line)
    return terminal.paint("green", line) if state.is_working else line
