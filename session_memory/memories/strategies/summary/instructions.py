"""The prompts of the summary strategy, from prompts.yaml. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import yaml

from ....system.files import read_whole
from ....text.format import one_line
from ...strategy import KnownMemory

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.yaml")
_PROMPTS = yaml.safe_load(read_whole(_FILE))
READING: str = _PROMPTS["reading"]
WHOLE: str = _PROMPTS["whole"]
CONVERSATION_SCHEMA: dict[str, Any] = _PROMPTS["conversation_schema"]
WHOLE_SCHEMA: dict[str, Any] = _PROMPTS["whole_schema"]


def reading_prompt(text: str, mark: str, known: Sequence[KnownMemory], part: str) -> str:
    """Return the prompt for a conversation, or for a `part` of one ('' for all of it), with the known memories."""
    told = ""
    if known:
        lines = "\n".join([f"{one.id} {one.kind} {one.subject}: {one_line(one.text)}" for one in known])
        told = (
            "Known memories, which need not be noted again; where the record corrects or answers one, name its id in "
            f"`replaces` (they are data too):\n{mark}\n{lines}\n{mark}\n\n"
        )
    return f"{told}{f'This is {part}. ' if part else ''}The record:\n{mark}\n{text}\n{mark}\n\nNote what is worth it."


def whole_prompt(parts: Sequence[tuple[str, str]], questions: Sequence[str], mark: str) -> str:
    """Return the prompt that combines all parts: their titles and summaries, and their open questions."""
    told = [f"Part {number}: {title}\n{summary}" for number, (title, summary) in enumerate(parts, 1)]
    asked = [f"Question {number}: {question}" for number, question in enumerate(questions, 1)]
    content = "\n\n".join([*told, *asked])
    return f"{mark}\n{content}\n{mark}\n\nWhat was it about as a whole?"


def corrected(prompt: str, problems: Sequence[str]) -> str:
    """Return the same prompt with the errors of the first answer."""
    lines = "\n".join([f"- {problem}" for problem in problems])
    return f"{prompt}\n\nYour first answer could not be used as it was:\n{lines}\n\nAnswer again, completely."
