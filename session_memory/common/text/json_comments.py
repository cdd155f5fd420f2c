"""Converts JSON with comments, a byte order mark or trailing commas to strict JSON. Pure."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\\n]|\\.)*"'
COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
BOM = "\ufeff"
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def without_bom(text: str) -> str:
    """Return a text with a space for its byte order mark."""
    return " " + text[1:] if text.startswith(BOM) else text


def without_comments(text: str) -> str:
    """Return a text of the same length and lines, with spaces instead of comments."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0])

    return COMMENT.sub(blank, text)


def without_last_commas(text: str) -> str:
    """Return a text without comments, with spaces instead of commas after a last item."""

    def blank(match: re.Match[str]) -> str:
        return (
            " "
            if match[0] == "," and text[: match.start()].rstrip()[-1:] not in ("", "[", "{", ",")
            else match[0]
        )

    return _LAST_COMMA.sub(blank, text)
