"""Points in time as texts: ISO 8601, local time for people, and a date or a time ago as they name it. Without
`datetime`, which a prompt would wait for."""

from __future__ import annotations

import time

EXAMPLES = "a date (2026-02-01), a time ago (30m, 2h, 3d, 2w), today or yesterday"
_UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_MIDNIGHTS: dict[str, int] = {}  # of the days that were met last
_MOST_MIDNIGHTS = 1000
_MINUTES: dict[tuple[int, object], tuple[str, str]] = {}  # those in the local zone that were met last
_MOST_MINUTES = 100


def epoch_seconds(text: object) -> float | None:
    """Seconds since 1970 of `2026-02-21T03:39:07.123Z` (or `+01:00`, or no zone: UTC); None for other text."""
    if not isinstance(text, str) or len(text) < 19 or text[10] not in "T ":
        return None
    try:
        midnight = _MIDNIGHTS.get(text[:10]) or _midnight(text[:10])
        hour, minute = int(text[11:13]), int(text[14:16])
        if text[19:20] == "." and text[-1] == "Z" and text[20:-1].isdigit():  # as nearly all are written
            second, offset = float(text[17:-1]), 0
        else:
            second, offset = _second_and_offset(text[17:])
    except ValueError:
        return None
    if not (hour < 24 and minute < 60 and second < 61):
        return None
    return midnight + hour * 3600 + minute * 60 + second - offset


def _midnight(day: str) -> int:
    """Return the second in which a day begins. Raises ValueError."""
    year, month, date = int(day[0:4]), int(day[5:7]), int(day[8:10])
    if not (1 <= month <= 12 and 1 <= date <= 31):
        raise ValueError(day)
    if len(_MIDNIGHTS) == _MOST_MIDNIGHTS:
        _MIDNIGHTS.clear()
    return _MIDNIGHTS.setdefault(day, _days_from_civil(year, month, date) * 86400)


def _second_and_offset(text: str) -> tuple[float, int]:
    """Read what follows the minute: return the second and the offset of the zone from UTC, in seconds."""
    zone_at = 2
    if text[2:3] == ".":
        zone_at = 3
        while text[zone_at : zone_at + 1].isdigit():
            zone_at += 1
    fraction = float("0" + text[2:zone_at]) if zone_at > 3 else 0.0
    return int(text[:2]) + fraction, _zone_seconds(text[zone_at:])


def _zone_seconds(zone: str) -> int:
    if zone in ("", "Z", "z"):
        return 0
    if zone[0] not in "+-":
        raise ValueError(zone)
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
    return -seconds if zone[0] == "-" else seconds


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's algorithm: years begin in March)."""
    if month <= 2:
        year, month = year - 1, month + 12
    days = 365 * year + year // 4 - year // 100 + year // 400
    return days + (153 * month - 457) // 5 + day - 719469


def iso_time(seconds: float) -> str:
    """Return seconds since 1970 as `2026-02-21T03:39:07.123Z`. Such texts sort as the times do."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{milliseconds:03}Z"


def now_milliseconds() -> int:
    """Milliseconds since 1970, the unit of all times in the store."""
    return time.time_ns() // 1_000_000


def local_time(seconds: float) -> str:
    """Return seconds since 1970 in the time zone of this machine: `2026-02-21 03:39`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def local_iso_time(seconds: float) -> str:
    """Return the same to the second, with the distance of the zone to UTC: `2026-02-21 03:39:07+01:00`. Messages of one
    minute share its text, which takes two thirds of the time; zones are whole minutes from UTC."""
    minute, second = divmod(int(seconds), 60)
    start, zone = _MINUTES.get((minute, time.tzname)) or _local_minute(minute)
    return f"{start}{second:02}{zone}"


def _local_minute(minute: int) -> tuple[str, str]:
    """Return the text before and behind the seconds of a time in this minute since 1970."""
    if len(_MINUTES) == _MOST_MINUTES:
        _MINUTES.clear()
    text = time.strftime("%Y-%m-%d %H:%M:%z", time.localtime(minute * 60))
    return _MINUTES.setdefault((minute, time.tzname), (text[:17], f"{text[17:20]}:{text[20:22]}"))


def age(seconds: float) -> str:
    """Return an age in the largest whole unit: `just now`, `3m ago`, `2h ago`, `5d ago`."""
    if seconds < 60:
        return "just now"
    for unit, length in (("d", 86400), ("h", 3600)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit} ago"
    return f"{int(seconds // 60)}m ago"


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
