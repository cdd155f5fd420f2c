"""Reads the states of sessions, again and again. Transcripts are only read after a change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..common.errors import described
from ..common.system.files import status_at
from ..common.system.process_table import ProcessTable
from ..common.text.sanitize import for_people
from .runtimes._evidence import Processes, ProcessEvidence, SessionPlace
from .runtimes.base import Runtime
from .runtimes.table import all_runtimes
from .states import ASKS, UNKNOWN, WORKING, State
from .transcripts._last_turn import LastTurn, last_turn
from .transcripts.sessions import FoundSession

Stamp = tuple[float, int, int]  # of a transcript: its time, size and inode

_RESULT_SECONDS = 10.0  # from the end of a command's process to its result in the transcript


class _ReadTurn:
    """The last turn of a session's transcript as it was last read, and the problem with that.

    `running` is the id of the last call whose process was seen, at `seen_at`."""

    def __init__(self) -> None:
        self.stamp: Stamp = (0.0, -1, 0)
        self.turn = LastTurn()
        self.problem = self.running = ""
        self.seen_at = 0.0

    def read(self, session: FoundSession) -> None:
        """Read the turn again if the transcript has changed."""
        status = status_at(session.session.path)
        if status is None:
            return
        session.modified, session.size = status.st_mtime, status.st_size
        stamp = status.st_mtime, status.st_size, status.st_ino
        if stamp != self.stamp:
            has_grown = stamp[1] > self.stamp[1] and stamp[2] == self.stamp[2]
            earlier = self.turn if has_grown and not self.problem else None
            self.stamp, self.problem = stamp, ""
            try:
                self.turn = last_turn(session.runtime, session.session.path, earlier)
            except Exception as error:  # any error affects only this session
                self.problem = for_people(described(error))


class StateReader:
    """Reads the states of sessions by their transcripts, and by the processes of this machine.

    The processes are listed again after `pause` seconds."""

    def __init__(self, environ: Mapping[str, str], pause: float = 0.0) -> None:
        self._environ = environ
        self._pause = pause
        self._table = ProcessTable([])
        self._listed_at = -pause
        self._turns: dict[str, _ReadTurn] = {}

    def list_processes(self) -> None:
        """List the processes again, if the pause is over."""
        if time.monotonic() - self._listed_at >= self._pause:
            self._table = ProcessTable.now(self._table)
            self._listed_at = time.monotonic()

    def first_began(self, now: float) -> float:
        """Return when the oldest running process of a session began; `now` if there is none."""
        began = [
            self._table.opened_at(process)
            for runtime in all_runtimes()
            for process in Processes(runtime, self._table).sessions()
        ]
        return min(began, default=now)

    def look_at(self, session: FoundSession) -> tuple[Stamp, float]:
        """Read the session's last turn, and the time and size of its transcript.

        Return the transcript's stamp, and when the last prompt came, 0.0 if unknown."""
        known = self._turns.setdefault(session.session.path, _ReadTurn())
        known.read(session)
        return known.stamp, known.turn.asked_at

    def states(self, sessions: Iterable[tuple[FoundSession, str]], now: float) -> dict[str, State]:
        """Return the states of sessions that were looked at, by the paths of their transcripts.

        Each comes with the directory that it works in, '' if unknown."""
        pairs = list(sessions)
        evidence = self._evidence(pairs)
        return {session.session.path: self._state(session, evidence, now) for session, _ in pairs}

    def open_states(
        self, sessions: Iterable[FoundSession], now: float
    ) -> list[tuple[FoundSession, State]]:
        """Return the sessions that have not ended, with their states, and read no others."""
        listed = list(sessions)
        evidence = self._evidence([(session, "") for session in listed])
        opened = [each for each in listed if evidence[each.session.path].is_alive is not False]
        for session in opened:
            self.look_at(session)
        return [(session, self._state(session, evidence, now)) for session in opened]

    def forget(self, kept: Iterable[str]) -> None:
        """Drop the turns of all sessions except the ones whose transcripts are `kept`."""
        self._turns = {path: self._turns[path] for path in kept if path in self._turns}

    def _state(
        self, session: FoundSession, evidence: Mapping[str, ProcessEvidence], now: float
    ) -> State:
        path = session.session.path
        known, of_process = self._turns[path], evidence[path]
        if known.problem and of_process.is_alive:
            return State(UNKNOWN, session.modified, reason=known.problem)
        directory = known.turn.cwd or session.start
        state = State.of(session.runtime, known.turn, of_process, directory, now)
        state = _without_approved(known, state, of_process, now)
        # a rule may hide everything else
        return state if session.has_text else State(state.name, state.since)

    def _evidence(
        self, sessions: Iterable[tuple[FoundSession, str]]
    ) -> Mapping[str, ProcessEvidence]:
        """Return the evidence of sessions, by the paths of their transcripts."""
        places: dict[tuple[str, str], tuple[Runtime, list[SessionPlace]]] = {}
        for session, directory in sessions:
            runtime, home = session.runtime, session.home
            config_dir = runtime.config_dir(self._environ) if home.sessions_dir else home.root
            place = SessionPlace(
                session.session.path, session.id, (directory, session.start), session.modified
            )
            places.setdefault((runtime.name, config_dir), (runtime, []))[1].append(place)
        evidence: dict[str, ProcessEvidence] = {}
        for (_, config_dir), (runtime, of_runtime) in places.items():
            evidence.update(runtime.evidence(config_dir, of_runtime, self._table))
        return evidence


def _without_approved(
    known: _ReadTurn, state: State, evidence: ProcessEvidence, now: float
) -> State:
    """Return a state that does not ask for a command whose process ran and has just ended.

    Of several open calls, nothing tells whose process it was."""
    turn = known.turn
    calls = evidence.calls or turn.calls
    if evidence.noted or turn.asks_approval or [call.kind for call in calls] != ["command"]:
        return state
    if evidence.runs_since(evidence.called_at or turn.called_at, now):
        known.running, known.seen_at = calls[0].call_id, now
    has_run = known.running == calls[0].call_id and 0 <= now - known.seen_at <= _RESULT_SECONDS
    return replace(state, name=WORKING) if state.name == ASKS and has_run else state
