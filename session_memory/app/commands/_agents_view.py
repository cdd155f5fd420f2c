"""The sessions of `agents` as rows, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...common.system.tables import AlignedRows, fitted, width_of
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, one_line
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ..active_sessions import ActiveSession

if TYPE_CHECKING:
    from ._team_reader import TeamAnswer, TeamReader

LEAST_REQUEST = 16  # columns of a request, below which it is left out


@dataclass(frozen=True)
class AgentsView:
    """A selection of sessions: at most `limit`, ended ones if `with_ended`, and the team's."""

    limit: int
    with_ended: bool = False
    team: TeamReader | None = None

    def of(self, sessions: Sequence[ActiveSession], now: float) -> Agents:
        """Return the sessions in the order of their states, the latest first."""
        ordered = sorted(sessions, key=lambda each: (each.state.rank, -each.state.since))
        shown = [each for each in ordered if self.with_ended or not each.state.has_ended]
        team = self._team_of({each.id for each in sessions}) if self.team else None
        return Agents(shown[: self.limit], len(shown), len(ordered) - len(shown), now, team)

    def _team_of(self, own_ids: set[str]) -> TeamAgents:
        assert self.team is not None
        return TeamAgents(self.team, own_ids, self.limit)


@dataclass(frozen=True)
class Agents(Result):
    """The sessions; `total` counts them with those beyond the limit, `ended` those left out."""

    sessions: list[ActiveSession]
    total: int
    ended: int
    now: float
    team: TeamAgents | None = None

    def show(self, terminal: Terminal) -> None:
        _show_rows(terminal, self.sessions, self.now)
        if not self.sessions:
            terminal.line("No agent is open on this machine.")
        if self.total > len(self.sessions):
            terminal.line(
                f"These are {len(self.sessions)} of {self.total}: --limit N shows more of them."
            )
        if self.ended:
            terminal.line(f"{counted(self.ended, 'session')} ended today: --all lists them.")
        if self.team:
            self.team.show(terminal, self.now)

    def as_json(self) -> dict[str, Any]:
        return {
            "agents": [agent_json(each) for each in self.sessions],
            "more": self.total - len(self.sessions),
            "ended_sessions": self.ended,
            "team": self.team.as_json() if self.team else None,
        }


@dataclass(frozen=True)
class TeamAgents:
    """At most `limit` of the team's sessions that are not on this machine too.

    Your own sessions are shown before the store's answer is waited for."""

    reader: TeamReader
    own_ids: set[str]
    limit: int

    def show(self, terminal: Terminal, now: float) -> None:
        answer = self._answer()
        if answer.sessions:
            terminal.line()
            terminal.line("The team, as its machines last pushed:")
            _show_rows(terminal, answer.sessions[: self.limit], now)
        elif answer.is_known and not answer.problem:
            terminal.line("The team shared no other session of today.")
        if len(answer.sessions) > self.limit:
            terminal.line(
                f"These are {self.limit} of {len(answer.sessions)}: --limit N shows more of them."
            )
        if answer.problem:
            terminal.note(answer.problem)

    def as_json(self) -> dict[str, Any]:
        answer = self._answer()
        return {
            "agents": [agent_json(each) for each in answer.sessions[: self.limit]],
            "more": max(0, len(answer.sessions) - self.limit),
            "problem": answer.problem or None,
        }

    def _answer(self) -> TeamAnswer:
        return self.reader.latest().without(self.own_ids)


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
        "who": session.who or None,
        "pushed": iso_time(session.pushed_at) if session.who else None,
    }


def _show_rows(terminal: Terminal, sessions: Sequence[ActiveSession], now: float) -> None:
    rows = [(_row(each, now), partial(_last_cells, each)) for each in sessions]
    for each, line in zip(sessions, AlignedRows(rows, [1]).lines(terminal.width)):
        terminal.line(_painted(terminal, each, line))
        for collision in each.collisions:
            terminal.note(collision)


def _row(session: ActiveSession, now: float) -> tuple[str, ...]:
    state = session.state
    since = age(now - (state.since or session.last_at))
    return state.name, since, session.place, session.runtime, session.who


def _last_cells(session: ActiveSession, room: int) -> str:
    """Return the request and what the session does, in so many columns."""
    does = fitted(session.doing, room)
    left = room - width_of(does) - 4  # quotes, and the space between
    name = one_line(session.request or session.name)
    request = f'"{fitted(name, left)}"' if name and left >= LEAST_REQUEST else ""
    return "  ".join([part for part in (request, does) if part])


def _painted(terminal: Terminal, session: ActiveSession, line: str) -> str:
    state = session.state
    if state.needs_user:
        return terminal.paint("yellow", line)
    return terminal.paint("green", line) if state.is_working else line
