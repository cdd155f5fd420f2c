"""Decides whether a session is at work: while a turn is running.

The page, `sessions` and `why` all use this rule."""

from __future__ import annotations

from ...common.system.files import Opened, os
from ...common.system.json import objects_in
from ..runtimes.base import Runtime
from ..runtimes.records import TURNS, PromptId, Reply
from .entries import Entry
from .lines import windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

UNANSWERED_SECONDS = 600.0  # a request or call without an answer counts as in progress this long
# an agent may continue this long after a message, unless the message ends its turn
ANSWERED_SECONDS = 20.0
TURN_BYTES = 256 * 1024  # searched from the end for the end of a turn
_INTERRUPTED = b'"[Request interrupted by user'  # how Claude Code notes that the user ended a turn


def is_running(role: str, is_call: bool, silent_seconds: float) -> bool:
    """Return whether a turn is running, by the last entry's role and the time since then.

    An agent that answered waits for its user. An agent that was asked, or that called a tool, is at
    work."""
    has_answered = role == "assistant" and not is_call
    return silent_seconds <= (ANSWERED_SECONDS if has_answered else UNANSWERED_SECONDS)


def is_at_work(
    runtime: Runtime, path: str, entries: Sequence[Entry], silent_seconds: float
) -> bool:
    """Return whether the session with these last entries is at work.

    `silent_seconds` is the time since the last write; `path` is its transcript. A session is not at
    work once its process has ended, if the runtime notes that. Raises OSError."""
    if not entries or not is_running(entries[-1].role, bool(entries[-1].tools), silent_seconds):
        return False
    return not runtime.has_left(path) and not _has_ended(runtime, path)


def _has_ended(runtime: Runtime, path: str) -> bool:
    """Check if the last message near the end of a transcript ends a turn. Raises OSError."""
    with Opened(path) as descriptor:
        for lines in windows_backward(descriptor, 0, os.fstat(descriptor).st_size, TURN_BYTES):
            for _, line in reversed(lines):
                if _INTERRUPTED in line and b'"type":"user"' in line:
                    return True
                if not runtime.records.prefilter(line, TURNS):
                    continue
                for record in reversed(objects_in(line)):
                    for event in reversed(runtime.records.events(record, 0, TURNS)):
                        if isinstance(event, Reply | PromptId):
                            return isinstance(event, Reply) and event.ends_turn
    return False
