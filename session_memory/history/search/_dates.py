"""Dates and times in a question. Pure.

`on 7 May`, `May 7th, 2023`, `in June 2023`, `2026-03-04`, `last summer`, `yesterday`, `two weeks
ago`. A date without a year matches each of the last years. Days are in local time."""

from __future__ import annotations

import time
from datetime import date, timedelta
from typing import NamedTuple

from ._time_words import (
    BEFORE_MONTH,
    BEFORE_YEAR,
    DAYS_BACK,
    LAST,
    MONTHS,
    NUMBERS,
    ON,
    SEASONS,
    THIS,
    UNITS,
    WEEKDAYS,
    WEEKEND,
    words_of_times,
)
from .ranking import NamedTime

YEARS_BACK = 10  # tried for a date without a year
HALF_LIFE_DAYS = 2.0  # near a named time; for a longer time, a quarter of its length
DAY_MILLISECONDS = 86_400_000
EARLIEST = date(1971, 1, 1)  # no session is older, and not every system can compute earlier times


class Days(NamedTuple):
    """A time in a question: its first and its last day."""

    first: date
    last: date


def times_in(text: str, now: float) -> list[NamedTime]:
    """Return the times that a question asked at `now` names, in seconds since 1970."""
    times = []
    for first, last in _days_in(text, date.fromtimestamp(now)):
        half_life = max(HALF_LIFE_DAYS, (last - first).days / 4) * DAY_MILLISECONDS
        edges = first - timedelta(1), last + timedelta(2)
        begin, end = (round(time.mktime(day.timetuple()) * 1000) for day in edges)
        times.append(NamedTime(begin, end, round(half_life)))
    return times


def _days_in(text: str, today: date) -> list[Days]:
    words = words_of_times(text)
    spans = []
    for at, word in enumerate(words):
        spans += (
            _written_as_number(word)
            or _month(words, at, today)
            or _season(words, at, today)
            or _year(words, at)
            or _relative(words, at, today)
        )
    return [days for days in spans if EARLIEST <= days.first <= today]


def _written_as_number(word: str) -> list[Days]:
    """Return `2026-03-04`."""
    if word.count("-") != 2 or len(word) != 10:
        return []
    parts = word.split("-")
    if not all(part.isdecimal() and part.isascii() for part in parts) or len(parts[0]) != 4:
        return []
    return _day(int(parts[0]), int(parts[1]), int(parts[2]))


def _month(words: list[str], at: int, today: date) -> list[Days]:
    """Return times such as `7 May`, `the 7th of May`, `May 7, 2023`, `in June`, `June 2023`."""
    month = MONTHS.get(words[at])
    if month is None:
        return []
    before = [word for word in words[max(0, at - 2) : at] if word != "of"]
    day = _day_number(before[-1]) if before else 0
    after = at + 1
    if not day and after < len(words) and (day := _day_number(words[after])):
        after += 1
    year = _year_number(words[after]) if after < len(words) else 0
    if not day and not year and not (at and words[at - 1] in BEFORE_MONTH):
        return []  # May, April and August are also names, and `march` and `may` verbs
    years = [year] if year else range(today.year, today.year - YEARS_BACK, -1)
    return [
        days
        for candidate in years
        for days in (_day(candidate, month, day) if day else _months(candidate, month, 1))
    ]


def _season(words: list[str], at: int, today: date) -> list[Days]:
    """Return `summer 2022`, `in winter`, `last summer`."""
    month = SEASONS.get(words[at])
    year = _year_number(words[at + 1]) if at + 1 < len(words) else 0
    if month is None or not (year or (at and words[at - 1] in BEFORE_MONTH)):
        return []
    years = [year] if year else range(today.year, today.year - YEARS_BACK, -1)
    return [days for candidate_year in years for days in _months(candidate_year, month, 3)]


def _year(words: list[str], at: int) -> list[Days]:
    """Return `in 2023`."""
    year = _year_number(words[at])
    return (
        [Days(date(year, 1, 1), date(year, 12, 31))]
        if year and at and words[at - 1] in BEFORE_YEAR
        else []
    )


def _relative(words: list[str], at: int, today: date) -> list[Days]:
    """Return times such as `yesterday`, `two weeks ago`, `last month`, `on Monday`."""
    word = words[at]
    if word in DAYS_BACK:
        return [_ago(today, DAYS_BACK[word], 1)]
    before = words[at - 1] if at else ""
    if word in UNITS and words[at + 1 : at + 2] == ["ago"]:
        count = _count(before)
        length = UNITS[word]
        return [_ago(today, count * length + length // 2, max(1, length))] if count else []
    if before in LAST and word in UNITS:
        return [_ago(today, 2 * UNITS[word], 2 * UNITS[word])]
    if before in THIS and word in UNITS:
        return [_ago(today, UNITS[word], UNITS[word] + 1)]
    if word == WEEKEND and before in (*LAST, *ON):
        return [_ago(today, today.weekday() + 2, 2)]
    if word in WEEKDAYS and before in (*LAST, *ON):
        back = (today.weekday() - WEEKDAYS[word]) % 7 or 7
        return [_ago(today, back, 1)]
    return []


def _ago(today: date, days: int, length: int) -> Days:
    days = min(days, today.toordinal() - 1)
    first = today - timedelta(days)
    return Days(first, first + timedelta(length - 1))


def _day(year: int, month: int, day: int) -> list[Days]:
    try:
        date_found = date(year, month, day)
    except ValueError:
        return []
    return [Days(date_found, date_found)]


def _months(year: int, month: int, count: int) -> list[Days]:
    years, following = divmod(month - 1 + count, 12)
    return [Days(date(year, month, 1), date(year + years, following + 1, 1) - timedelta(1))]


def _day_number(word: str) -> int:
    """Return the day that `7` or `7th` means; 0 if it is not a day."""
    digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
    return (
        int(digits)
        if len(digits) <= 2 and digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= 31
        else 0
    )


def _year_number(word: str) -> int:
    return (
        int(word)
        if len(word) == 4 and word.isdecimal() and word.isascii() and word[:2] in ("19", "20")
        else 0
    )


def _count(word: str) -> int:
    """Return the number that a word such as `two`, `a` or `3` means; 0 for any other word."""
    return (
        int(word)
        if word.isdecimal() and word.isascii() and len(word) <= 4
        else NUMBERS.get(word, 0)
    )
