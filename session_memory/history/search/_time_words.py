"""The words by which a question names a time, in English and German. Few do, and only they load
`datetime`."""

from __future__ import annotations

_EDGES = ".,;:!?()[]{}\"'“”„‘’`*"


def _numbered(names: str) -> dict[str, int]:
    """Return the names that mean 1, 2, ...; a slash separates names of the same number."""
    return {
        name: number for number, same in enumerate(names.split(), 1) for name in same.split("/")
    }


MONTHS = _numbered(
    "january/jan/januar/jänner february/feb/februar march/mar/märz april/apr may/mai "
    "june/jun/juni july/jul/juli "
    "august/aug september/sep/sept october/oct/oktober/okt november/nov december/dec/dezember/dez"
)
SEASONS = {
    "spring": 3,
    "summer": 6,
    "autumn": 9,
    "winter": 12,
    "frühling": 3,
    "frühjahr": 3,
    "sommer": 6,
    "herbst": 9,
}
DAYS_BACK = {"today": 0, "tonight": 0, "yesterday": 1, "heute": 0, "gestern": 1, "vorgestern": 2}
WEEKDAYS = {
    name: number - 1
    for name, number in _numbered(
        "monday/montag tuesday/dienstag wednesday/mittwoch thursday/donnerstag friday/freitag "
        "saturday/samstag "
        "sunday/sonntag"
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
    "tag": 1,
    "tagen": 1,
    "tage": 1,
    "woche": 7,
    "wochen": 7,
    "monat": 30,
    "monaten": 30,
    "monate": 30,
    "jahr": 365,
    "jahren": 365,
    "jahre": 365,
}
NUMBERS = {
    **_numbered(
        "one/a/an/ein/eine/einem/einer/einen two/zwei three/drei four/vier five/fünf six/sechs "
        "seven/sieben"
    ),
    "couple": 2,
    "few": 3,
    "several": 4,
    "ein paar": 3,
    "paar": 3,
    "einigen": 3,
}
LAST = (
    "last",
    "past",
    "previous",
    "letzte",
    "letzten",
    "letzter",
    "letztes",
    "letzem",
    "vorige",
    "vorigen",
)
THIS = ("this", "diese", "dieser", "diesen", "diesem", "dieses")
ON = ("on", "am", "at", "vom", "the")
WEEKEND = ("weekend", "wochenende")
BEFORE_MONTH = (
    *LAST,
    *THIS,
    "in",
    "im",
    "during",
    "since",
    "of",
    "early",
    "late",
    "mid",
    "until",
    "by",
    "seit",
    "bis",
)
BEFORE_YEAR = ("in", "of", "during", "since", "year", "im", "jahr", "seit", "until", "by")
_WORDS = frozenset((*MONTHS, *SEASONS, *DAYS_BACK, *WEEKDAYS, *UNITS, *WEEKEND))


def words_of_times(text: str) -> list[str]:
    """Return the words of a text in lower case; none if they name no time."""
    words = [word.strip(_EDGES).lower() for word in text.split()]
    names_a_time = any(word in _WORDS or word[:1].isdigit() for word in words)
    return [word for word in words if word] if names_a_time else []
