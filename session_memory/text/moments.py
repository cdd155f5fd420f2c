"""Points in time as people and agents name them: a date, a time ago, today or yesterday. In local time."""

from __future__ import annotations

import time

EXAMPLES = "a date (2026-02-01), a time ago (30m, 2h, 3d, 2w), today or yesterday"
_UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")


def milliseconds_at(text: str, now: float | None = None) -> int | None:
    """Milliseconds since 1970 of the point in time that `text` names; None if it names none. `now` is in seconds."""
    now = time.time() if now is None else now
    word = text.strip().lower()
    if word in ("today", "yesterday"):
        year, month, day, *_ = time.localtime(now)
        begin = time.mktime((year, month, day - (word == "yesterday"), 0, 0, 0, 0, 0, -1))
        return round(begin * 1000)
    if word[:-1].isdecimal() and word[-1:] in _UNIT_SECONDS:
        return round(max(0.0, now - int(word[:-1]) * _UNIT_SECONDS[word[-1]]) * 1000)
    for form in _FORMATS:
        try:
            return round(time.mktime(time.strptime(text.strip(), form)) * 1000)
        except (ValueError, OverflowError):
            continue
    return None
