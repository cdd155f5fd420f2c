"""What somebody said, quoted in a line: without the marks of Markdown, with which only a whole text can be shown."""

from __future__ import annotations

import re

from ..text.format import one_line, shorten
from ..text.sanitize import beginning, for_people

_FENCES = ("```", "~~~")
_RULE = set("|:- \t")  # and a line below the head of a table
# No pattern takes more than a moment, whatever stands in the line.
_LEAD = re.compile(r"[ \t]*(?:(?:#{1,6}|>)[ \t]+|[-*+][ \t]+(?=\S))")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_BOLD = re.compile(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
_CODE = re.compile(r"(`{1,2})([^`]+)\1")


def quoted(text: str, characters: int) -> str:
    """The beginning of `text` on one line, at most so many characters, for people."""
    lines = [_plain(line) for line in for_people(beginning(text, 4 * characters)).split("\n")]
    return shorten(one_line(" ".join(lines)), characters)


def _plain(line: str) -> str:
    """A line as it reads once it is rendered."""
    if line.lstrip().startswith(_FENCES) or ("---" in line and set(line) <= _RULE):
        return ""
    lead = _LEAD.match(line)
    if lead:
        line = ("• " if lead[0].strip() in ("-", "*", "+") else "") + line[lead.end() :]
    for pattern, group in ((_LINK, r"\1"), (_BOLD, r"\1"), (_CODE, r"\2")):
        line = pattern.sub(group, line)
    return line
