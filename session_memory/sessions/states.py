"""The rule for the state of a session: it works, waits for its user, asks for approval, or ended.

`agents` and the page use it. docs/use/agents.md says what it cannot know, by runtime."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..common.text.sanitize import for_people
from .runtimes._evidence import ASKING, IN_BACKGROUND, SLACK_SECONDS, ProcessEvidence
from .runtimes._evidence import WAITING as NOTED_WAITING
from .runtimes._evidence import WORKING as NOTED_WORKING
from .runtimes.base import Runtime
from .transcripts._last_turn import LastTurn
from .transcripts.entries import ToolUse
from .transcripts.turns import ANSWERED_SECONDS

WORKING, WAITS, ASKS = "working", "waits for you", "asks for approval"
BACKGROUND, GONE = "in the background", "worktree gone"
ENDED, UNKNOWN = "ended", "unknown"
# who waits for their user comes first
STATES = (ASKS, WAITS, GONE, UNKNOWN, BACKGROUND, WORKING, ENDED)
NEEDING = (ASKS, WAITS)

APPROVAL_SECONDS = 2.0  # a call that does nothing for so long waits for approval
OTHER_SECONDS = 10.0  # and a call that may do its work without a process may run so long
_SUB_AGENTS = ("agent", "task", "spawn_agent", "wait", "wait_agent", "invoke_agent", "delegate")
# tools that ask the user something, or for consent to a plan
_QUESTIONS = (
    *("ask", "ask_user", "ask_user_question", "askuserquestion", "exit_plan_mode", "exitplanmode"),
    *("question", "request_user_input"),
)


@dataclass(frozen=True)
class State:
    """The state of a session, one of STATES; `since` in seconds since 1970, 0.0 if unknown.

    `tool` and `argument` are the call that runs or asks for approval. `reason` says why the state
    is unknown, or what its user is asked."""

    name: str = ENDED
    since: float = 0.0
    tool: str = ""
    argument: str = ""
    reason: str = ""

    @classmethod
    def of(
        cls, runtime: Runtime, turn: LastTurn, evidence: ProcessEvidence, directory: str, now: float
    ) -> State:
        """Return the state of a session in `directory`, by its last turn and the evidence."""
        if evidence.is_alive is None:
            return cls(UNKNOWN, turn.at, reason=evidence.reason)
        if not evidence.is_alive:
            return cls(ENDED, turn.at)
        if directory and not os.path.isdir(directory):
            return cls(GONE, turn.at)
        if evidence.calls:
            turn = turn._replace(
                calls=evidence.calls, called_at=evidence.called_at, has_ended=False
            )
        elif 0 < turn.at < evidence.opened_at - SLACK_SECONDS:
            # an earlier process ended in the middle of it
            turn = turn._replace(calls=(), has_ended=True)
        if evidence.noted:
            return _noted_state(turn, evidence)
        if turn.calls and not turn.has_ended:
            return _calling_state(runtime, turn, evidence, now)
        return _quiet_state(turn, evidence, now)

    @property
    def needs_user(self) -> bool:
        """Check if nothing goes on until the user does something."""
        return self.name in NEEDING

    @property
    def news(self) -> tuple[str, str, str]:
        """The name, and the call that needs the user; a change of these is shown."""
        return (self.name, self.tool, self.argument) if self.needs_user else (self.name, "", "")

    @property
    def is_working(self) -> bool:
        return self.name == WORKING

    @property
    def has_ended(self) -> bool:
        return self.name == ENDED

    @property
    def rank(self) -> int:
        """The place in an order in which those that need their user come first."""
        return STATES.index(self.name)

    @property
    def names_call(self) -> bool:
        """Check if the call matters now: it runs, or asks for approval."""
        return self.name in (ASKS, WORKING, UNKNOWN) and bool(self.tool)

    @property
    def label(self) -> str:
        """The state with its tool, '' for a session that has ended."""
        if self.name == ENDED:
            return ""
        return f"{self.name}: {self.tool}" if self.tool else self.name


def _noted_state(turn: LastTurn, evidence: ProcessEvidence) -> State:
    """Return the state that the runtime notes; the transcript names the call."""
    call = turn.calls[0] if turn.calls else ToolUse("")
    if evidence.noted == ASKING:
        return State(ASKS, evidence.since, call.name, call.argument)
    if evidence.noted == NOTED_WAITING:
        return State(WAITS, evidence.since, reason=for_people(evidence.question))
    # it stays busy while sub-agents run in the background
    has_answered = turn.has_ended and turn.at > evidence.since
    if evidence.noted == IN_BACKGROUND or (evidence.noted == NOTED_WORKING and has_answered):
        return State(BACKGROUND, turn.at)
    return State(WORKING, turn.asked_at or evidence.since, call.name, call.argument)


def _calling_state(
    runtime: Runtime, turn: LastTurn, evidence: ProcessEvidence, now: float
) -> State:
    """Return the state of a session whose last calls have no result yet."""
    call = turn.calls[0]
    seconds = now - turn.called_at
    working = State(WORKING, turn.asked_at or turn.called_at, call.name, call.argument)
    asking = State(ASKS, turn.called_at, call.name, call.argument)
    if turn.asks_approval:
        return asking
    if call.name.lower() in _QUESTIONS:
        return State(WAITS, turn.called_at, reason=for_people(call.argument))
    words = evidence.process.words if evidence.process else ()
    if evidence.runs_since(turn.called_at, now) or not runtime.asks_for_approval(words):
        return working
    # a call from the future is from before the clock was set back
    if call.kind in ("command", "edit", "read"):
        return working if -APPROVAL_SECONDS <= seconds <= APPROVAL_SECONDS else asking
    if -OTHER_SECONDS <= seconds <= OTHER_SECONDS or call.name.lower() in _SUB_AGENTS:
        return working
    reason = f"{call.name} has no result yet: it may run, or ask for approval"
    return State(UNKNOWN, turn.called_at, call.name, call.argument, reason)


def _quiet_state(turn: LastTurn, evidence: ProcessEvidence, now: float) -> State:
    """Return the state of a session without an open call."""
    if turn.asks_approval:  # Kimi Code writes a call once it is approved
        return State(ASKS, turn.at)
    if turn.has_ended or turn.role == "":
        runs = evidence.has_command(evidence.started_up_at)
        return State(BACKGROUND if runs else WAITS, turn.at)
    if turn.role == "user" or 0 <= now - turn.at <= ANSWERED_SECONDS:
        return State(WORKING, turn.asked_at or turn.at)
    return State(WAITS, turn.at)
