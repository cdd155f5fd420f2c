"""The English words with which a question names a time.

Few questions do, and only these load `datetime`.
"""

from __future__ import annotations

_EDGES = ".,;:!?()[]{}\"'“”„‘’`*"


def _numbered(names: str) -> dict[str, int]:
    """Return names with their numbers from 1 on; a slash separates names of the same number."""
    return {
        name: number for number, same in enumerate(names.split(), 1) for name in same.split("/")
    }


MONTHS = _numbered(
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug "
    "september/sep/sept october/oct november/nov december/dec"
)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
DAYS_BACK = {"today": 0, "tonight": 0, "yesterday": 1}
WEEKDAYS = {
    name: number - 1
    for name, number in _numbered(
        "monday tuesday wednesday thursday friday saturday sunday"
    ).items()
}
UNITS = {
    "day": 1,
    "days": 1,
    "week": 7,
    "weeks": 7,
    "month": 30,
    "months": 30,
    "year": 365,
    "years": 365,
}
NUMBERS = {
    **_numbered("one/a/an two three four five six seven"),
    "couple": 2,
    "few": 3,
    "several": 4,
}
LAST = ("last", "past", "previous")
THIS = ("this",)
ON = ("on", "at", "the")
WEEKEND = "weekend"
BEFORE_MONTH = (
    *LAST,
    *THIS,
    "in",
    "during",
    "since",
    "of",
    "early",
    "late",
    "mid",
    "until",
    "by",
)
BEFORE_YEAR = ("in", "of", "during", "since", "year", "until", "by")
_WORDS = frozenset((*MONTHS, *SEASONS, *DAYS_BACK, *WEEKDAYS, *UNITS, WEEKEND))


def words_of_times(text: str) -> list[str]:
    """Return the words of a text in lower case; none if no word names a time."""
    words = [word.strip(_EDGES).lower() for word in text.split()]
    names_a_time = any(word in _WORDS or word[:1].isdigit() for word in words)
    return [word for word in words if word] if names_a_time else []
