"""What a check found: in plain words, with how to mend it where something is wrong."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, WRONG = "ok", "note", "wrong"


@dataclass(frozen=True)
class Finding:
    """`state` is ok, note (not wrong, yet good to know) or wrong; `about` what was looked at; `mend` what to do."""

    state: str
    about: str
    text: str
    mend: str = ""


def ok(about: str, text: str) -> Finding:
    """All is well with it."""
    return Finding(OK, about, text)


def note(about: str, text: str, mend: str = "") -> Finding:
    """Nothing is wrong, yet somebody might wonder."""
    return Finding(NOTE, about, text, mend)


def wrong(about: str, text: str, mend: str) -> Finding:
    """It keeps the hook from doing its work."""
    return Finding(WRONG, about, text, mend)
