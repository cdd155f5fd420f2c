"""Tells whether a session is at work: while a turn is running. The one rule for the page, `sessions` and `why`."""

from __future__ import annotations

UNANSWERED_SECONDS = 600.0  # a request or call without an answer counts as in progress this long
ANSWERED_SECONDS = 20.0  # an agent may continue this long after a message


def is_running(role: str, is_call: bool, silent_seconds: float) -> bool:
    """Return whether a turn is running if the last entry has this role, or is a tool call, and nothing came for so many
    seconds. An agent that answered waits for its user; one that was asked or called a tool is at work."""
    has_answered = role == "assistant" and not is_call
    return silent_seconds <= (ANSWERED_SECONDS if has_answered else UNANSWERED_SECONDS)
