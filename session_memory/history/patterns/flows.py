"""Sequences of steps in agents' work, and sessions that recovered from a failing step. Pure.

A step is a tool, or a command without its arguments. Only steps for the same request form a
sequence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...common.text.shell_commands import family
from .failures import Failure, is_failure, what_followed

if TYPE_CHECKING:
    from ..store.values import Conversation, StoredEntry

LEAST_TIMES = 3  # for a step after another to be a habit
MOST_RECOVERIES = 5  # of a step


class StepFlow(NamedTuple):
    """A step, whether it failed, the step after it, and the number of such pairs.

    Repetitions of a step with the same outcome count once."""

    step: str
    has_failed: bool
    following: str
    times: int


class Recovery(NamedTuple):
    """A step that failed and later succeeded in a session.

    It has the session's title, the number of the failed call and its time (seconds since 1970, None
    if unknown), its error, and the solution, such as `after editing a.ts`."""

    session: str
    title: str
    number: int
    timestamp: int | None
    error: str
    helped: str


class FailingStep(NamedTuple):
    """A step, how often it was used and failed, and its last recoveries, the latest first."""

    step: str
    uses: int
    failures: int
    recoveries: list[Recovery]


class StepCounts:
    """Counts of steps."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._flows: Counter[tuple[str, bool, str]] = Counter()
        self._recoveries: dict[str, list[Recovery]] = defaultdict(list)

    def take_failures(self, conversation: Conversation, failed: Sequence[Failure]) -> None:
        """Note which of a conversation's failures were overcome."""
        for failure in failed:
            call, helped = failure.tool, what_followed(failure)
            if helped:
                self._recoveries[_step_name(call)].append(
                    Recovery(
                        conversation.session_id,
                        conversation.title,
                        call.number,
                        call.timestamp,
                        call.error,
                        helped,
                    )
                )

    def take(self, calls: Sequence[StoredEntry]) -> None:
        """Count the calls for one request, except calls with an unknown outcome."""
        steps = [(_step_name(call), is_failure(call)) for call in calls if call.outcome]
        for name, has_failed in steps:
            self._uses[name] += 1
            self._failures[name] += has_failed
        for (name, has_failed), after in pairwise(steps):
            if after != (name, has_failed):
                self._flows[name, has_failed, after[0]] += 1

    def flows(self, most: int) -> list[StepFlow]:
        """Return the `most` frequent flows that are habits.

        Half of them follow a failed step, if that many do."""
        habits = [
            StepFlow(*flow, times)
            for flow, times in self._flows.most_common()
            if times >= LEAST_TIMES
        ]
        failed = [flow for flow in habits if flow.has_failed][: most // 2]
        others = [flow for flow in habits if flow not in failed]
        return sorted([*failed, *others[: most - len(failed)]], key=lambda flow: -flow.times)

    def failing(self) -> list[FailingStep]:
        """Return the steps that failed, the most frequently failing first."""
        return [
            FailingStep(step, self._uses[step], times, self._latest(step))
            for step, times in self._failures.most_common()
            if times
        ]

    def _latest(self, step: str) -> list[Recovery]:
        """Return the last recovery of each session, the latest first."""
        ordered = sorted(self._recoveries[step], key=lambda recovery: recovery.timestamp or 0)
        by_session = {recovery.session: recovery for recovery in ordered}
        latest = sorted(by_session.values(), key=lambda recovery: -(recovery.timestamp or 0))
        return latest[:MOST_RECOVERIES]


def _step_name(call: StoredEntry) -> str:
    """Return the name of a step: `npm test` for a command, `Edit` for a tool."""
    return (family(call.text) if call.kind == "command" else "") or tool_name(call)


def tool_name(call: StoredEntry) -> str:
    """Return a tool's name with a capital, because runtimes write `Read` and `read`.

    Every shell is `Bash`; some runtimes call it `exec_command`, `shell_command` or
    `run_shell_command`."""
    return "Bash" if call.kind == "command" else call.tool[:1].upper() + call.tool[1:]
