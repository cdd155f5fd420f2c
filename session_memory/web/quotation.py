"""Quotations on one line, without Markdown, which only a whole text can render."""

from __future__ import annotations

import re

from ..text.format import one_line, shorten
from ..text.sanitize import beginning, for_people

_FENCES = ("```", "~~~")
_RULE = set("|:- \t")  # and a line below the head of a table
# Patterns with linear running time on any line.
_LEAD = re.compile(r"[ \t]*(?:(?:#{1,6}|>)[ \t]+|[-*+][ \t]+(?=\S))")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_BOLD = re.compile(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
_CODE = re.compile(r"(`{1,2})([^`]+)\1")


def quoted(text: str, characters: int) -> str:
    """Return the beginning of `text` on one line, at most so many characters, for people."""
    lines = [_plain(line) for line in for_people(beginning(text, 4 * characters)).split("\n")]
    return shorten(one_line(" ".join(lines)), characters)


def _plain(line: str) -> str:
    """Return a line as it reads when rendered."""
    if line.lstrip().startswith(_FENCES) or ("---" in line and set(line) <= _RULE):
        return ""
    lead = _LEAD.match(line)
    if lead:
        line = ("• " if lead[0].strip() in ("-", "*", "+") else "") + line[lead.end() :]
    for pattern, group in ((_LINK, r"\1"), (_BOLD, r"\1"), (_CODE, r"\2")):
        line = pattern.sub(group, line)
    return line
