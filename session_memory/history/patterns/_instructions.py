"""General instructions: sentences of a person's requests that apply to every task. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...common.text.format import one_line
from ...sessions.transcripts.reader import is_request

LONGEST_REQUEST = 1000  # characters: a longer one is pasted, or from a script
LENGTHS = range(16, 201)  # characters of an instruction
_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
_BULLET = "-*•> \t"
_GENERAL = (
    "always ",
    "never ",
    "do not ",
    "don't ",
    "please always ",
    "please never ",
    "please do not ",
    "please don't ",
    "make sure ",
    "please make sure ",
    "remember to ",
    "from now on",
)


def instructions_in(request: str) -> Iterator[str]:
    """Yield the sentences of a request that begin like a general instruction, except questions."""
    if len(request) > LONGEST_REQUEST or not is_request(request):
        return
    for sentence in map(one_line, _ENDS.split(request)):
        sentence = sentence.lstrip(_BULLET)
        words = sentence.casefold().replace("’", "'")
        is_general = words.startswith(_GENERAL) and not words.startswith("never mind")
        if is_general and len(sentence) in LENGTHS and not sentence.endswith("?"):
            yield sentence


def key_of_instruction(sentence: str) -> str:
    """Return what two instructions with the same words have in common."""
    return sentence.casefold().replace("’", "'").removeprefix("please ").rstrip(" .!")
