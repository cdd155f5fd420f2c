"""Titles of sessions without one: the request that says most, the heading of a plan, or when it began."""

from __future__ import annotations

from ..text.timestamps import local_time
from .entries import FROM_AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHORT_CHARACTERS = 40  # a longer text is always a request
TELLING_WORDS = 3  # so many words say what a session is about
_PLAN = "implement the following plan"
_PLAN_HEADINGS = ("", "plan", "implementation plan", "context", "overview", "summary", "goal")
_PLAN_LABELS = ("implementation plan:", "plan:")
# Words that agree, thanks or say to continue, and name nothing. So are single characters and numbers: they answer a
# question.
_AGREED = """
    ahead all alright and as commit continue cool correct do done exactly fine go good great it just keep lgtm
    looks nice no nope now ok okay on perfect please proceed push resume right same sounds sure thank thanks
    that the then this very well works yeah yep yes you [document] [image] ja weiter danke oui non 继续 好的
"""
_NO_REQUEST = frozenset(_AGREED.split())


def is_request(text: str) -> bool:
    """Check if a prompt is a request, unlike "3", "yes, continue", "commit" or the message of another agent."""
    if text.startswith(FROM_AGENTS):
        return False
    return len(text) > SHORT_CHARACTERS or _telling_words(text) > 0


def says_enough(request: str) -> bool:
    """Check if a request says what a session is about, unlike "fix it"."""
    return len(request) > SHORT_CHARACTERS or _telling_words(request) >= TELLING_WORDS


def telling_request(requests: Iterable[str]) -> str:
    """Return the first request that says enough, else the one that says most; '' for none."""
    best = ""
    for request in requests:
        if says_enough(request):
            return request
        if not best or _telling_words(request) > _telling_words(best):
            best = request
    return best


def _telling_words(text: str) -> int:
    words = [word.strip(".,;:!?()'\"*`") for word in text.casefold().split()]
    telling = [word for word in words if len(word) > 1 and word not in _NO_REQUEST and not word.isdigit()]
    return sum([1 if word.isascii() else (len(word) + 1) // 2 for word in telling])  # some scripts have no spaces


def is_plan(prompt: str) -> bool:
    """Check if a prompt is a plan to implement, as a runtime passes it on."""
    return prompt[: len(_PLAN)].casefold() == _PLAN


def title_of(request: str) -> str:
    """Return the title that a request gives a session: its own words, or the heading of a plan."""
    return (_heading_of_plan(request) if is_plan(request) else "") or request


def title_by_time(began: float | None) -> str:
    """Return the title of a session of which only the time it `began` is known or may be shown."""
    return "unnamed session" if began is None else f"session of {local_time(began)}"


def _heading_of_plan(prompt: str) -> str:
    for line in prompt[len(_PLAN) :].split("\n"):
        heading = line.strip("#*_: \t\r")
        label = next((one for one in _PLAN_LABELS if heading.casefold().startswith(one)), "")
        heading = heading[len(label) :].strip()
        if heading.casefold() not in _PLAN_HEADINGS:
            return heading
    return ""
