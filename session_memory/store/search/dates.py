"""Dates and times in a question, and how close an entry is to them. Pure.

English and German: `on 7 May`, `May 7th, 2023`, `in June 2023`, `2026-03-04`, `last summer`, `yesterday`, `two weeks
ago`, `am 7. Mai`, `letzte Woche`, `vor drei Tagen`. A date without a year matches each of the last years. Days are
those of local time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, timedelta
from math import pow

from ...named_tuple import NamedTuple

YEARS_BACK = 10  # tried for a date without a year
HALF_LIFE_DAYS = 2.0  # of what is near a named time; for a longer time, a quarter of its length
DAY_MILLISECONDS = 86_400_000
EARLIEST = date(1971, 1, 1)  # no session is older, and not every system computes with earlier times
_EDGES = ".,;:!?()[]{}\"'“”„‘’`*"


class Days(NamedTuple):
    """A time in a question: its first and its last day."""

    first: date
    last: date


class NamedTime(NamedTuple):
    """A named time in milliseconds since the epoch, from the start of the day before to the end of the day after:
    events are announced or reported a little earlier or later."""

    begin: int
    end: int
    half_life: int


def times_in(text: str, now: float) -> list[NamedTime]:
    """Return the times that a question names, asked at `now`, in seconds since the epoch."""
    found = []
    for first, last in _days_in(text, date.fromtimestamp(now)):
        half_life = max(HALF_LIFE_DAYS, (last - first).days / 4) * DAY_MILLISECONDS
        edges = first - timedelta(1), last + timedelta(2)
        begin, end = (round(time.mktime(day.timetuple()) * 1000) for day in edges)
        found.append(NamedTime(begin, end, round(half_life)))
    return found


def closeness(moment: int, times: Sequence[NamedTime]) -> float:
    """Return how close a moment (milliseconds since the epoch) is to the nearest time: 1.0 within it."""
    return max([pow(2.0, -max(begin - moment, moment - end, 0) / half_life) for begin, end, half_life in times])


def _days_in(text: str, today: date) -> list[Days]:
    words = [word.strip(_EDGES).lower() for word in text.split()]
    if not any(word in _WORDS or word[:1].isdigit() for word in words):
        return []
    words = [word for word in words if word]
    found = []
    for at, word in enumerate(words):
        found += (
            _written_as_number(word)
            or _month(words, at, today)
            or _season(words, at, today)
            or _year(words, at)
            or _relative(words, at, today)
        )
    return [days for days in found if EARLIEST <= days.first <= today]


def _written_as_number(word: str) -> list[Days]:
    """Return `2026-03-04`, `4.3.2026`."""
    if word.count("-") == 2 and len(word) == 10:
        parts = word.split("-")
    elif word.count(".") == 2:
        parts = word.split(".")[::-1]
    else:
        return []
    if not all(part.isdecimal() and part.isascii() for part in parts) or len(parts[0]) != 4:
        return []
    return _day(int(parts[0]), int(parts[1]), int(parts[2]))


def _month(words: list[str], at: int, today: date) -> list[Days]:
    """Return `7 May`, `the 7th of May`, `May 7, 2023`, `in June`, `June 2023`."""
    month = _MONTHS.get(words[at])
    if month is None:
        return []
    before = [word for word in words[max(0, at - 2) : at] if word != "of"]
    day = _day_number(before[-1]) if before else 0
    after = at + 1
    if not day and after < len(words) and (day := _day_number(words[after])):
        after += 1
    year = _year_number(words[after]) if after < len(words) else 0
    if not day and not year and not (at and words[at - 1] in _BEFORE_MONTH):
        return []  # May, April and August are also names, and `march` and `may` verbs
    years = [year] if year else range(today.year, today.year - YEARS_BACK, -1)
    return [days for one in years for days in (_day(one, month, day) if day else _months(one, month, 1))]


def _season(words: list[str], at: int, today: date) -> list[Days]:
    """Return `summer 2022`, `in winter`, `last summer`."""
    month = _SEASONS.get(words[at])
    year = _year_number(words[at + 1]) if at + 1 < len(words) else 0
    if month is None or not (year or (at and words[at - 1] in _BEFORE_MONTH)):
        return []
    years = [year] if year else range(today.year, today.year - YEARS_BACK, -1)
    return [days for one in years for days in _months(one, month, 3)]


def _year(words: list[str], at: int) -> list[Days]:
    """Return `in 2023`."""
    year = _year_number(words[at])
    return [Days(date(year, 1, 1), date(year, 12, 31))] if year and at and words[at - 1] in _BEFORE_YEAR else []


def _relative(words: list[str], at: int, today: date) -> list[Days]:
    """Return `yesterday`, `two weeks ago`, `last month`, `on Monday`."""
    word = words[at]
    if word in _DAYS_BACK:
        return [_ago(today, _DAYS_BACK[word], 1)]
    before = words[at - 1] if at else ""
    if word in _UNITS and (
        (at + 1 < len(words) and words[at + 1] == "ago") or (at > 1 and words[at - 2] == "vor") or before == "vor"
    ):
        count = _count(before)
        length = _UNITS[word]
        return [_ago(today, count * length + length // 2, max(1, length))] if count else []
    if before in _LAST and word in _UNITS:
        return [_ago(today, 2 * _UNITS[word], 2 * _UNITS[word])]
    if before in _THIS and word in _UNITS:
        return [_ago(today, _UNITS[word], _UNITS[word] + 1)]
    if word in _WEEKEND and before in (*_LAST, *_ON):
        return [_ago(today, today.weekday() + 2, 2)]
    if word in _WEEKDAYS and before in (*_LAST, *_ON):
        back = (today.weekday() - _WEEKDAYS[word]) % 7 or 7
        return [_ago(today, back, 1)]
    return []


def _ago(today: date, days: int, length: int) -> Days:
    days = min(days, today.toordinal() - 1)
    first = today - timedelta(days)
    return Days(first, first + timedelta(length - 1))


def _day(year: int, month: int, day: int) -> list[Days]:
    try:
        found = date(year, month, day)
    except ValueError:
        return []
    return [Days(found, found)]


def _months(year: int, month: int, count: int) -> list[Days]:
    years, following = divmod(month - 1 + count, 12)
    return [Days(date(year, month, 1), date(year + years, following + 1, 1) - timedelta(1))]


def _day_number(word: str) -> int:
    """Return the day that `7`, `7th` or `7.` means; 0 for none."""
    digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
    return int(digits) if len(digits) <= 2 and digits.isdecimal() and digits.isascii() and 1 <= int(digits) <= 31 else 0


def _year_number(word: str) -> int:
    return int(word) if len(word) == 4 and word.isdecimal() and word.isascii() and word[:2] in ("19", "20") else 0


def _count(word: str) -> int:
    """Return the number that `two`, `a` or `3` means; 0 for no number."""
    return int(word) if word.isdecimal() and word.isascii() and len(word) <= 4 else _NUMBERS.get(word, 0)


def _numbered(names: str) -> dict[str, int]:
    """Return the names that mean 1, 2, ...; a slash separates names of the same number."""
    return {name: number for number, same in enumerate(names.split(), 1) for name in same.split("/")}


_MONTHS = _numbered(
    "january/jan/januar/jänner february/feb/februar march/mar/märz april/apr may/mai june/jun/juni july/jul/juli "
    "august/aug september/sep/sept october/oct/oktober/okt november/nov december/dec/dezember/dez"
)
_SEASONS = {
    "spring": 3, "summer": 6, "autumn": 9, "winter": 12, "frühling": 3, "frühjahr": 3, "sommer": 6, "herbst": 9,
}  # fmt: skip
_DAYS_BACK = {"today": 0, "tonight": 0, "yesterday": 1, "heute": 0, "gestern": 1, "vorgestern": 2}
_WEEKDAYS = {
    name: number - 1
    for name, number in _numbered(
        "monday/montag tuesday/dienstag wednesday/mittwoch thursday/donnerstag friday/freitag saturday/samstag "
        "sunday/sonntag"
    ).items()
}
_UNITS = {
    "day": 1, "days": 1, "week": 7, "weeks": 7, "month": 30, "months": 30, "year": 365, "years": 365,
    "tag": 1, "tagen": 1, "tage": 1, "woche": 7, "wochen": 7, "monat": 30, "monaten": 30, "monate": 30, "jahr": 365,
    "jahren": 365, "jahre": 365,
}  # fmt: skip
_NUMBERS = {
    **_numbered("one/a/an/ein/eine/einem/einer/einen two/zwei three/drei four/vier five/fünf six/sechs seven/sieben"),
    "couple": 2, "few": 3, "several": 4, "ein paar": 3, "paar": 3, "einigen": 3,
}  # fmt: skip
_LAST = ("last", "past", "previous", "letzte", "letzten", "letzter", "letztes", "letzem", "vorige", "vorigen")
_THIS = ("this", "diese", "dieser", "diesen", "diesem", "dieses")
_ON = ("on", "am", "at", "vom", "the")
_WEEKEND = ("weekend", "wochenende")
_BEFORE_MONTH = (
    *_LAST, *_THIS, "in", "im", "during", "since", "of", "early", "late", "mid", "until", "by", "seit", "bis",
)  # fmt: skip
_BEFORE_YEAR = ("in", "of", "during", "since", "year", "im", "jahr", "seit", "until", "by")
_WORDS = frozenset((*_MONTHS, *_SEASONS, *_DAYS_BACK, *_WEEKDAYS, *_UNITS, *_WEEKEND))
