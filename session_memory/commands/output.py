"""How commands write values for people."""

from __future__ import annotations

from ..text.format import one_line, shorten
from ..text.sanitize import for_prompt
from ..text.timestamps import iso_time, local_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

_TIMES = ("at", "first_message_at", "last_at", "last_message_at", "timestamp")


def moment(milliseconds: int | None) -> str:
    """`2026-02-21 03:39` in local time; `-` where it is not known."""
    return "-" if milliseconds is None else local_time(milliseconds / 1000)


def fields(value: NamedTuple) -> dict[str, Any]:
    """The fields of a value, for JSON: points in time, which are milliseconds in the store, as `iso` writes them."""
    return {name: iso(found) if name in _TIMES else found for name, found in value._asdict().items()}


def iso(milliseconds: int | None) -> str | None:
    """`2026-02-21T03:39:07.123Z`; None where it is not known."""
    return None if milliseconds is None else iso_time(milliseconds / 1000)


def brief(text: str, limit: int) -> str:
    """`text` on one line, for people and models alike, in at most `limit` characters."""
    return shorten(one_line(for_prompt(text)), limit)
