"""Points in time as text: ISO 8601, local time for people, and dates or ages as people type them.

It does not use `datetime`, for which a prompt would wait.
"""

from __future__ import annotations

import time

EXAMPLES = (
    "a date (2026-02-01), a time (2026-02-01 13:30), a time ago (30m, 2h, 3d, 2w), today, "
    "yesterday or monday"
)
_UNITS = {
    name: seconds
    for seconds, names in (
        (60, "m min mins minute minutes"),
        (3600, "h hour hours"),
        (86400, "d day days"),
        (7 * 86400, "w week weeks"),
    )
    for name in names.split()
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MIDNIGHTS: dict[str, int] = {}  # of the days that were met last
_MOST_MIDNIGHTS = 1000
# those in the local zone that were met last
_MINUTES: dict[tuple[int, object], tuple[str, str]] = {}
_MOST_MINUTES = 100


def epoch_seconds(text: object) -> float | None:
    """Return the seconds since 1970 of an ISO 8601 time, or None.

    The zone is Z, an offset such as `+01:00`, or missing (UTC)."""
    if not isinstance(text, str) or len(text) < 19 or text[10] not in "T ":
        return None
    try:
        midnight = _MIDNIGHTS.get(text[:10]) or _midnight(text[:10])
        hour, minute = int(text[11:13]), int(text[14:16])
        # as nearly all are written
        if text[19:20] == "." and text[-1] == "Z" and text[20:-1].isdigit():
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
    """Return the second and the zone's offset in seconds from the text after the minute."""
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
    """Return days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's algorithm: years
    begin in March)."""
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
    """Return local time to the second with the zone's offset: `2026-02-21 03:39:07+01:00`.

    Times of the same minute share its text, which takes two thirds of the time to make. Offsets are
    whole minutes."""
    minute, second = divmod(int(seconds), 60)
    start, zone = _MINUTES.get((minute, time.tzname)) or _local_minute(minute)
    return f"{start}{second:02}{zone}"


def _local_minute(minute: int) -> tuple[str, str]:
    """Return the text before and after the seconds, for times in this minute since 1970."""
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
    """Return the milliseconds since 1970 of the point in time in `text`, or None.

    It is local time unless it names its zone. A day means its first instant. `now` is in seconds.
    """
    span = _span_of(text, time.time() if now is None else now)
    return None if span is None else round(span[0] * 1000)


def last_millisecond(text: str, now: float | None = None) -> int | None:
    """Return the last millisecond of the point in time in `text`, for the end of a range.

    A day ends after 23 or 25 hours if its clocks change."""
    span = _span_of(text, time.time() if now is None else now)
    return None if span is None else round(span[1] * 1000) - (span[0] < span[1])


def _span_of(text: str, now: float) -> tuple[float, float] | None:
    """Return the first second of the named time, and the one after its last.

    For an instant both are the same."""
    word = " ".join(text.lower().split())
    if word in ("now", "today", "yesterday"):
        return (now, now) if word == "now" else _day(time.localtime(now), -int(word == "yesterday"))
    if word in _WEEKDAYS:  # the last one before today
        today = time.localtime(now)
        return _day(today, -((today.tm_wday - _WEEKDAYS.index(word)) % 7 or 7))
    if (ago := _seconds_ago(word)) is not None:
        return (max(0.0, now - ago),) * 2
    day = word[:10].replace("/", "-")
    digits = day if day.isdecimal() and len(word) == 8 else ""  # 20261101
    try:
        parsed = time.strptime(digits or day, "%Y%m%d" if digits else "%Y-%m-%d")
        if digits or len(word) <= 10:
            return _day(parsed)
        if word[10] in " t":
            return (_instant(parsed, word[11:]),) * 2
    except (ValueError, OverflowError):
        pass
    return None


def _seconds_ago(word: str) -> float | None:
    """Return the seconds in `3d`, `3 days` or `3 days ago`; None for other words."""
    number = word.removesuffix(" ago")
    unit = number.lstrip("0123456789").strip()
    count = number[: len(number) - len(unit)].strip()
    if not (count.isascii() and count.isdecimal()) or unit not in _UNITS:
        return None
    return float(count) * _UNITS[unit]


def _day(date: time.struct_time, days: int = 0) -> tuple[float, float]:
    """Return the first second of a local day, and of the day after it."""
    first, after = [
        time.mktime((*date[:2], date[2] + days + more, 0, 0, 0, 0, 0, -1)) for more in (0, 1)
    ]
    return first, after


def _instant(date: time.struct_time, clock: str) -> float:
    """Return the second of `13:30`, `13:30:07`, `13:30:07.123`, `13:30z` or `13:30+02:00` on a day.

    Raises ValueError."""
    zone_at = next((at for at, character in enumerate(clock) if character in "z+-"), len(clock))
    zone, (minute, point, fraction) = clock[zone_at:], clock[:zone_at].strip().partition(".")
    at = time.strptime(minute, "%H:%M:%S" if minute.count(":") == 2 else "%H:%M")
    fraction_seconds = float(f"0.{fraction}") if point and fraction.isdecimal() else 0.0
    if point and not fraction.isdecimal():
        raise ValueError(clock)
    if not zone:
        return time.mktime((*date[:3], *at[3:6], 0, 0, -1)) + fraction_seconds
    digits = zone[1:].replace(":", "")
    if zone != "z" and not (
        digits.isdecimal() and len(digits) in (2, 4) and digits[:2] < "24" and digits[2:3] < "6"
    ):
        raise ValueError(zone)
    midnight = _days_from_civil(*date[:3]) * 86400
    return midnight + at[3] * 3600 + at[4] * 60 + at[5] + fraction_seconds - _zone_seconds(zone)


def midnight(at: float, days: int = 0) -> float:
    """Return the local start of a day `days` after the day of `at`, in seconds since 1970.

    Days of 23 hours count as others."""
    year, month, day, *_ = time.localtime(at)
    return time.mktime((year, month, day + days, 0, 0, 0, 0, 0, -1))
