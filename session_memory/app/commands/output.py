"""Formats values for people."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...common.system.terminal import Result
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import iso_time, local_time

_TIMES = ("at", "first_at", "first_message_at", "last_at", "last_message_at", "timestamp")


class CheckResult(Result):
    """The result of a section of `doctor`."""

    @property
    def is_well(self) -> bool:
        """True if nothing is wrong."""
        raise NotImplementedError


def moment(milliseconds: int | None) -> str:
    """Return `2026-02-21 03:39` in local time; `-` if unknown."""
    return "-" if milliseconds is None else local_time(milliseconds / 1000)


def fields(value: NamedTuple) -> dict[str, Any]:
    """Return the fields of a value, for JSON.

    Times, which are milliseconds in the store, have the form of `iso`."""
    return {
        name: iso(field) if name in _TIMES else field for name, field in value._asdict().items()
    }


def iso(milliseconds: int | None) -> str | None:
    """Return `2026-02-21T03:39:07.123Z`; None if unknown."""
    return None if milliseconds is None else iso_time(milliseconds / 1000)


def brief(text: str, limit: int) -> str:
    """Return `text` on one line, for people and models alike, in at most `limit` characters."""
    return shorten(one_line(for_prompt(text)), limit)
