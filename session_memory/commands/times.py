"""Points in time as people name them on a command line, and as they are shown to them. Local time."""

from __future__ import annotations

import time

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_EXAMPLES = "a date (2026-02-01), a time ago (30m, 2h, 3d, 2w), today or yesterday"


def since(text: str) -> int:
    """Milliseconds since the epoch, of a date, a time ago, today or yesterday. Raises ValueError."""
    return point(text, time.time())


def point(text: str, now: float) -> int:
    """The point in time that `text` names; `now` in seconds since the epoch. Raises ValueError."""
    word = text.strip().lower()
    if word in ("today", "yesterday"):
        year, month, day, *_ = time.localtime(now)
        begin = time.mktime((year, month, day - (word == "yesterday"), 0, 0, 0, 0, 0, -1))
        return round(begin * 1000)
    if word[:-1].isdecimal() and word[-1:] in _UNITS:
        return round(max(0.0, now - int(word[:-1]) * _UNITS[word[-1]]) * 1000)
    for form in _FORMATS:
        try:
            return round(time.mktime(time.strptime(text.strip(), form)) * 1000)
        except (ValueError, OverflowError):
            continue
    raise ValueError(f"{text!r} is no point in time; it is {_EXAMPLES}")


def moment(milliseconds: int | None) -> str:
    """`2026-02-21 03:39`; `-` where it is not known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000)) if milliseconds is not None else "-"
