"""How commands write values for people."""

from __future__ import annotations

from ..text.format import one_line, shorten
from ..text.sanitize import for_prompt
from ..text.timestamps import local_time


def moment(milliseconds: int | None) -> str:
    """`2026-02-21 03:39` in local time; `-` where it is not known."""
    return "-" if milliseconds is None else local_time(milliseconds / 1000)


def brief(text: str, limit: int) -> str:
    """`text` on one line, for people and models alike, in at most `limit` characters."""
    return shorten(one_line(for_prompt(text)), limit)
