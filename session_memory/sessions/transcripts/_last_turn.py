"""The last turn of a transcript, read from its end: calls without a result, and how it ended."""

from __future__ import annotations

import os
from typing import NamedTuple

from ...common.system.files import Opened
from ...common.system.json import objects_in
from ..runtimes.base import Runtime
from ..runtimes.records import CALLS, MESSAGES, TURNS, Approval, CallResult, PromptId, Reply
from .entries import Entry, ToolUse
from .lines import last_line_end, windows_backward

TURN_BYTES = 256 * 1024  # searched from the end
_WANTED = MESSAGES | CALLS | TURNS


class LastTurn(NamedTuple):
    """The last turn of a transcript. Times are in seconds since 1970, 0.0 if unknown.

    `role` is the last entry's: `user`, `assistant`, or '' if there is none. `calls` have no result
    yet and were made at `called_at`; `asks_approval` if the transcript says so. `has_ended` means
    that the agent's last message ends the turn, or that its user interrupted it. `at` is the time
    of the last event, `asked_at` the time of the last prompt if it is near the end. `cwd` is the
    runtime's directory at the last entry that has one, '' if unknown. `end` is the offset at which
    the transcript's last whole line ended."""

    role: str = ""
    calls: tuple[ToolUse, ...] = ()
    called_at: float = 0.0
    asks_approval: bool = False
    has_ended: bool = False
    at: float = 0.0
    asked_at: float = 0.0
    cwd: str = ""
    end: int = 0


class _Reading:
    """The part of a turn that was read so far, backward."""

    def __init__(self, runtime: Runtime) -> None:
        self._records = runtime.records
        self._ids: set[str] = set()  # of results, and of approvals that were answered
        self._calls: list[ToolUse] = []
        self._has_calls = self._is_past_calls = self._asks = False
        self._called_at = self._at = self._asked_at = 0.0
        self._ends: bool | None = None  # None: nothing shows it yet
        self._role = self._cwd = ""
        self.is_done = False

    def read(self, line: bytes) -> None:
        """Read the line before the last one that was read."""
        for record in reversed(objects_in(line)):
            at = self._records.time(record) or 0.0
            if self._ends is None and self._records.is_interruption(record):
                self._ends = True
            calls = list(self._records.calls_and_results(record))
            for call in reversed(calls):
                self._note_call(call, at)
            # a command in the background may end after the turn
            is_result = any(isinstance(call, CallResult) for call in calls)
            for event in reversed(self._records.events(record, 0, _WANTED)):
                if not (is_result and isinstance(event, Reply)):
                    self._note(event, at)

    def _note_call(self, call: ToolUse | CallResult | Approval, at: float) -> None:
        """Note a call of the last message, or a result; earlier calls have theirs."""
        if isinstance(call, CallResult):
            at = call.time or at
        self._at = self._at or at
        if isinstance(call, CallResult):
            self._is_past_calls = self._is_past_calls or self._has_calls
            self._ids.add(call.call_id)
        elif isinstance(call, Approval):
            self._asks = self._asks or not (call.is_answered or call.id in self._ids)
            self._ids.add(call.id)
        elif not self._is_past_calls and self._ends is None:
            self._has_calls = True
            if call.call_id and call.call_id not in self._ids:
                self._calls.insert(0, call)
                self._called_at = at

    def _note(self, event: object, at: float) -> None:
        if isinstance(event, Entry):
            at = event.timestamp or at
            self._at, self._role = self._at or at, self._role or event.role
            self._cwd = self._cwd or event.cwd
            if event.role == "user":
                self._asked_at = at
                self.is_done = True
        elif isinstance(event, Reply | PromptId) and self._ends is None:
            self._ends = isinstance(event, Reply) and event.ends_turn

    @property
    def has_all_calls(self) -> bool:
        """Check if no earlier line changes the calls, unless by an older approval."""
        return self._ends is not None

    def turn(self, end: int, earlier: LastTurn) -> LastTurn:
        """Return the turn; an `earlier` reading has the values of its lines that were not read."""
        return LastTurn(
            self._role or earlier.role,
            tuple(self._calls),
            self._called_at,
            self._asks,
            bool(self._ends),
            self._at or earlier.at,
            self._asked_at or earlier.asked_at,
            self._cwd or earlier.cwd,
            end,
        )


def last_turn(runtime: Runtime, path: str, earlier: LastTurn | None = None) -> LastTurn:
    """Return the last turn of the transcript at `path`. Raises OSError.

    With an `earlier` reading, after which the transcript only grew, a long turn is not read to its
    beginning again."""
    reading = _Reading(runtime)
    known = LastTurn() if earlier is None or earlier.asks_approval else earlier
    with Opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        end = last_line_end(descriptor, 0, size, TURN_BYTES) or 0
        for lines in windows_backward(descriptor, 0, end, TURN_BYTES):
            for offset, line in reversed(lines):
                if offset < known.end and reading.has_all_calls:
                    return reading.turn(end, known)
                reading.read(line)
                if reading.is_done:
                    return reading.turn(end, LastTurn())
    return reading.turn(end, LastTurn())
