"""How a session is called that has no title: by its first request, by the plan that it was given, by its beginning."""

from __future__ import annotations

from ..text.timestamps import local_time

SHORT_CHARACTERS = 40  # a text that is longer asks for something
_PLAN = "implement the following plan"
_PLAN_HEADINGS = ("", "plan", "implementation plan", "context", "overview", "summary", "goal")
_PLAN_LABELS = ("implementation plan:", "plan:")
# What agrees, thanks or says to go on, and names nothing. With it single characters and numbers: answers to a question.
_AGREED = """
    ahead all alright and as commit continue cool correct do done exactly fine go good great it just keep lgtm
    looks nice no nope now ok okay on perfect please proceed push resume right same sounds sure thank thanks
    that the then this very well works yeah yep yes you [document] [image] ja weiter danke oui non 继续 好的
"""
_NO_REQUEST = frozenset(_AGREED.split())


def is_request(text: str) -> bool:
    """Whether a prompt says what it wants, as "3", "yes, continue" or "commit" do not."""
    if len(text) > SHORT_CHARACTERS:
        return True
    words = [word.strip(".,;:!?()'\"*`") for word in text.casefold().split()]
    return any([len(word) > 1 and word not in _NO_REQUEST and not word.isdigit() for word in words])


def subject(prompt: str) -> str:
    """What a prompt is about: of a plan to be implemented its heading, else the prompt itself."""
    if prompt[: len(_PLAN)].casefold() != _PLAN:
        return prompt
    for line in prompt[len(_PLAN) :].split("\n"):
        heading = line.strip("#*_: \t\r")
        label = next((one for one in _PLAN_LABELS if heading.casefold().startswith(one)), "")
        heading = heading[len(label) :].strip()
        if heading.casefold() not in _PLAN_HEADINGS:
            return heading
    return prompt


def title_by_time(began: float | None) -> str:
    """What to call a session of which nothing is known, or may be told, but when it `began`."""
    return "unnamed session" if began is None else f"session of {local_time(began)}"
