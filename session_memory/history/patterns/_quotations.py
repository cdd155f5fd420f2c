"""Finds agreements, decisions and rejections in messages, verbatim. Pure."""

import re
from collections.abc import Iterable

from ...common.text.format import one_line, shorten

MOST_DECISIONS = 3
DECISION_CHARACTERS = 200
GO_AHEAD_CHARACTERS = 60
_GO_AHEAD = re.compile(
    r"^\W*(?:o?k(?:ay)?|yes|yep|yeah|sure|go|go ahead|do it|let'?s (?:go|do it|do that)|please "
    r"do|proceed|continue|"
    r"sounds good|looks good|lgtm|great|perfect|good|fine|agreed?|make it so|implement "
    r"(?:it|this|that|the plan)|"
    r"(?:do )?(?:option \w+|#?\d+|[a-d]))\b",
    re.I,
)
_CHOICE = (
    r"\b(?:instead of|rather than|decided|won'?t work|doesn'?t work|didn'?t "
    r"work|avoid|prefer|rejected?|chose|"
    r"better to|must not|should not|shouldn'?t|no longer)\b|(?:^|[,;] )(?:please )?(?:do "
    r"not|don'?t|never)\b|"
    r"^we\b.*\bbecause\b|\bi (?:do not|don'?t) (?:want|like|need)\b"
)
_DECISION = re.compile(_CHOICE, re.I)
_REASON = re.compile(rf"{_CHOICE}|\b(?:because|root cause|the (?:problem|issue|reason) is)\b", re.I)
_NO_DECISION = re.compile(
    r"^(?:let me|let'?s see|now i|now let|i'?ll|is there|are there|should)\b|[:?]\W*$", re.I
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def is_go_ahead(text: str) -> bool:
    """Check if a prompt only agrees: "ok, let's go"."""
    return len(text.strip()) <= GO_AHEAD_CHARACTERS and bool(_GO_AHEAD.match(text.strip()))


def proposal_in(text: str) -> str:
    """Return the paragraph of an answer that proposes something.

    It is the last paragraph that asks, with the one before it; else the last paragraph."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    asks = [place for place, part in enumerate(paragraphs) if part.rstrip("*_ ").endswith("?")]
    if not asks:
        return paragraphs[-1] if paragraphs else ""
    return "\n\n".join(paragraphs[max(0, asks[-1] - 1) : asks[-1] + 1])


def question_in(text: str) -> str:
    """Return the end of an answer that asks the user something; '' if it asks nothing."""
    proposal = proposal_in(text)
    return proposal if proposal.rstrip("*_ ").endswith("?") else ""


def last_sentence(text: str) -> str:
    """Return the last sentence of a text on one line, without emphasis; '' if it is empty."""
    return one_line(_SENTENCE.split(text.strip())[-1]).strip("*_# ")


def decisions(texts: Iterable[str], *, has_reasons: bool) -> tuple[str, ...]:
    """Return the first sentences that decide or reject something.

    With `has_reasons`, sentences that only explain a reason are included."""
    wanted = _REASON if has_reasons else _DECISION
    quotations = []
    for number, text in enumerate(texts):
        for sentence in _SENTENCE.split(text if number else ""):
            plain = one_line(sentence).replace("**", "").strip("-* ")
            compared = plain.replace("’", "'")  # as GPT models write it
            is_whole = 20 <= len(plain) <= 2 * DECISION_CHARACTERS
            if is_whole and wanted.search(compared) and not _NO_DECISION.search(compared):
                quotations.append(shorten(plain, DECISION_CHARACTERS))
    return tuple(dict.fromkeys(quotations))[:MOST_DECISIONS]
