"""Statements of a conversation: preferences, decisions, facts and rejections, found by their words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....text.format import one_line
from ...format import REJECTED
from .cues import HYPOTHETICAL, LEAD, PAST, QUESTION, QUOTED, REPORTED, SARCASM
from .decisions import agreed_proposal, chosen_option, is_decision
from .facts import stated_fact
from .preferences import is_foreign_preference, is_preference
from .rejections import is_taken_back, rejection, revoked, what_is_rejected
from .sentences import LONGEST, is_whole, sentences_of
from .typed import typed_paragraphs

if TYPE_CHECKING:
    from ....store.values import StoredEntry

PREFERENCE, DECISION, FACT = "preference", "decision", "fact"
ANSWERS = 3  # of the assistant, which a user may quote
FEWEST_WORDS = 3

_WORD = re.compile(r"[\w@/.-]{3,}")
_TAG = re.compile(
    r",? (?:ok(?:ay)?|please|alright|right|yes|deal|will you)\?+$", re.IGNORECASE
)  # does not turn an order into a question
# `I think we should` decides as `we should` does, only politely.
_SOFTENED = re.compile(rf"{LEAD}i (?:really |also )?think (?=we (?:should|want|must|need)\b)", re.IGNORECASE)
_INSTEAD = re.compile(r"\b(?:instead of|rather than|because|since)\b|, not")
_COMMON = """
    the and let's lets use using our for with that this keep into from new old one two tried test tests file files code
    switch move drop stop make all its are was were not
"""
_NAMES_NOTHING = frozenset(_COMMON.split())


class Statement(NamedTuple):
    """A statement: its kind, its text, the words that prove it, and the entry with them."""

    kind: str
    title: str
    quote: str
    entry: StoredEntry


def statements(entries: Iterable[StoredEntry]) -> list[Statement]:
    """Return the statements of a conversation that are valid at its end, in order."""
    found: list[Statement] = []
    answers: list[str] = []
    fresh = 0  # index of the first statement of the latest message
    for entry in entries:
        if entry.role == "tool" or not entry.text:
            continue
        if entry.role == "assistant":
            answers = [*answers[1 - ANSWERS :], entry.text]
            found = _with(found, _rejections(entry, _sentences(entry.text)))
        elif not entry.text.lstrip().startswith("/"):
            paragraphs = [sentences_of(one) for one in typed_paragraphs(entry.text, answers)]
            every = [sentence for sentences in paragraphs for sentence in sentences if len(sentence) <= LONGEST]
            if any(is_taken_back(one) and not QUESTION.search(one) for one in every):
                found = [*found[:fresh], *(one for one in found[fresh:] if one.kind != DECISION)]
            fresh = len(found)
            decided = [one.title for one in found if one.kind == DECISION]
            said = [one for sentences in paragraphs for one in _of_paragraph(entry, sentences, decided)]
            taken_up = _taken_up(entry, one_line(" ".join(every)), answers[-1]) if answers and not said else []
            found = _with(found, [*said, *taken_up])
    return found


def kind_of(sentence: str) -> tuple[str, str]:
    """Return the kind and text of a sentence that a user typed; '' for none."""
    bare = _TAG.sub("", _bare(sentence))
    if not is_whole(sentence) or any(one.search(bare) for one in (QUESTION, SARCASM, REPORTED, PAST)):
        return "", ""
    if is_foreign_preference(sentence):
        return PREFERENCE, _title(sentence)
    bare = _SOFTENED.sub("", bare)
    if HYPOTHETICAL.search(bare):
        return "", ""
    if is_preference(bare):
        return PREFERENCE, _title(sentence)
    if is_decision(bare):
        return DECISION, _title(sentence)
    stated = stated_fact(sentence, bare)
    return (FACT, _capitalised(stated)) if stated else ("", "")


def takes_back(rejected: str, statement: str) -> bool:
    """Return whether a rejection revokes a statement: they name the same thing."""
    return bool(_content(what_is_rejected(rejected)) & _chosen_words(statement))


def _with(found: list[Statement], added: Iterable[Statement]) -> list[Statement]:
    """Return the statements with others added; a decision that these reject is dropped."""
    for one in added:
        if one.kind == REJECTED:
            found = [old for old in found if old.kind == REJECTED or not takes_back(one.title, old.title)]
        if all(one.title.casefold() != old.title.casefold() for old in found):
            found = [*found, one]
    return found


def _of_paragraph(entry: StoredEntry, sentences: Sequence[str], decided: Sequence[str]) -> list[Statement]:
    """Return the statements of a paragraph that a user typed; `decided` holds the decisions so far."""
    found = list(_rejections(entry, sentences))
    rejected = " ".join([one.quote for one in found])
    for sentence in sentences:
        if not is_whole(sentence) or sentence in rejected or is_taken_back(sentence):
            continue
        named = _content(revoked(sentence))
        if any(named & _chosen_words(one) for one in decided):
            found.append(Statement(REJECTED, _title(sentence), sentence, entry))
            continue
        kind, title = kind_of(sentence)
        if kind:
            found.append(Statement(kind, title, sentence, entry))
    return found


def _rejections(entry: StoredEntry, sentences: Sequence[str]) -> Iterable[Statement]:
    """Yield the things tried or decided and then given up."""
    for sentence, following in zip(sentences, [*sentences[1:], ""]):
        if not is_whole(sentence):
            continue
        bare, after = _bare(sentence), _bare(following[:LONGEST])
        if any(one.search(bare) for one in (QUESTION, HYPOTHETICAL, REPORTED)):
            continue
        words = rejection(bare, "" if QUESTION.search(after) else after, by_user=entry.role == "user")
        if words:
            quote = sentence if words == bare else f"{sentence} {following}"
            yield Statement(REJECTED, _title(quote), quote, entry)


def _taken_up(entry: StoredEntry, said: str, answer: str) -> list[Statement]:
    """Return the decision that a user makes by agreeing to a proposal of the assistant or choosing one of its
    options."""
    taken = chosen_option(said, answer) or agreed_proposal(said, _sentences(answer))
    if taken is None:
        return []
    what, words = map(one_line, taken)
    return [Statement(DECISION, _capitalised(what), f"{words}\n{said}", entry)]


def _sentences(text: str) -> list[str]:
    return [sentence for paragraph in typed_paragraphs(text) for sentence in sentences_of(paragraph)]


def _bare(sentence: str) -> str:
    """Return a sentence without its quotations."""
    return QUOTED.sub(" ... ", sentence)


def _chosen_words(statement: str) -> frozenset[str]:
    """Return the words that name the choice, without its alternative and its reason."""
    return _content(_INSTEAD.split(statement)[0])


def _content(text: str) -> frozenset[str]:
    return frozenset([word for word in _WORD.findall(text.casefold()) if word not in _NAMES_NOTHING])


def _title(sentence: str) -> str:
    """Return a sentence without its introduction."""
    rest = re.sub(LEAD, "", _TAG.sub("", sentence), count=1, flags=re.IGNORECASE).strip()
    return _capitalised(rest if len(rest.split()) >= FEWEST_WORDS else sentence)


def _capitalised(text: str) -> str:
    text = text.strip()
    first = text.split(" ", 1)[0] if text else ""
    return text[0].upper() + text[1:] if re.fullmatch(r"[a-z]+(?:'[a-z]+)?[,:]?", first) else text
