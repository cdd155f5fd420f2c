"""Statements of a conversation: preferences, decisions, facts and rejections, found by their words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....store.values import StoredEntry
from ...format import REJECTED
from .phrases import WORDS, examples, pattern
from .sentences import LONGEST, is_whole, sentences_of, typed_paragraphs

PREFERENCE, DECISION, FACT = "preference", "decision", "fact"
ANSWERS = 3  # of the assistant, which a user may quote
FEWEST_WORDS = 3

_QUOTED = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]|(?<!\w)'[^']{3,}'(?!\w)|(?<!\w)‘[^’]{3,}’")
_WORD = re.compile(r"[\w@/.-]{3,}")
_INSTEAD = re.compile(r"\b(?:instead of|rather than|because|since)\b|, not")
_LEAD, _TAG = pattern("lead"), pattern("tag")
_QUESTION, _HYPOTHETICAL, _REPORTED = pattern("question"), pattern("hypothetical"), pattern("reported")
_SARCASM, _PAST = pattern("sarcasm"), pattern("past")
_NOT_YET, _INTRODUCED, _LASTING = pattern("not_yet"), pattern("introduced"), pattern("lasts")
_PASSING, _WANTS = pattern("passing"), pattern("wants")
_TRIED, _GIVES_UP, _TOO_BAD, _FAILS = map(pattern, ("tried", "gives_up", "too_bad", "fails"))
_REASON, _CONTINUES = pattern("rejection_reason"), pattern("continues")
_REVOKES, _TAKES_BACK = pattern("revokes"), pattern("takes_back")
_PREFERENCES, _FOREIGN_PREFERENCES = examples("preferences").values(), examples("foreign_preferences").values()
_DECISIONS, _REJECTIONS = examples("decisions").values(), examples("rejections").values()
_NAMES_NOTHING = frozenset(WORDS["name_nothing"])


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
            if any(is_taken_back(one) and not _QUESTION.search(one) for one in every):
                found = [*found[:fresh], *(one for one in found[fresh:] if one.kind != DECISION)]
            fresh = len(found)
            decided = [one.title for one in found if one.kind == DECISION]
            said = [one for sentences in paragraphs for one in _of_paragraph(entry, sentences, decided)]
            found = _with(found, said)
    return found


def kind_of(sentence: str) -> tuple[str, str]:
    """Return the kind and text of a sentence that a user typed; '' for none."""
    bare = _TAG.sub("", _bare(sentence))
    if not is_whole(sentence) or any(one.search(bare) for one in (_QUESTION, _SARCASM, _REPORTED, _PAST)):
        return "", ""
    if any(one.search(sentence) for one in _FOREIGN_PREFERENCES):
        return PREFERENCE, _title(sentence)
    if _HYPOTHETICAL.search(bare):
        return "", ""
    if any(one.search(bare) for one in _PREFERENCES):
        return PREFERENCE, _title(sentence)
    if _is_decision(bare):
        return DECISION, _title(sentence)
    told = None if _PASSING.search(bare) or _WANTS.search(bare) else _INTRODUCED.match(sentence)
    return (FACT, _capitalised(told["what"])) if told and _LASTING.search(told["what"]) else ("", "")


def takes_back(rejected: str, statement: str) -> bool:
    """Return whether a rejection revokes a statement: they name the same thing."""
    return bool(_content(_what_is_rejected(rejected)) & _chosen_words(statement))


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
        named = _content(_revoked(sentence))
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
        if any(one.search(bare) for one in (_QUESTION, _HYPOTHETICAL, _REPORTED)):
            continue
        words = _rejection(bare, "" if _QUESTION.search(after) else after, by_user=entry.role == "user")
        if words:
            quote = sentence if words == bare else f"{sentence} {following}"
            yield Statement(REJECTED, _title(quote), quote, entry)


def _sentences(text: str) -> list[str]:
    return [sentence for paragraph in typed_paragraphs(text) for sentence in sentences_of(paragraph)]


def _bare(sentence: str) -> str:
    """Return a sentence without its quotations."""
    return _QUOTED.sub(" ... ", sentence)


def _chosen_words(statement: str) -> frozenset[str]:
    """Return the words that name the choice, without its alternative and its reason."""
    return _content(_INSTEAD.split(statement)[0])


def _content(text: str) -> frozenset[str]:
    return frozenset([word for word in _WORD.findall(text.casefold()) if word not in _NAMES_NOTHING])


def _title(sentence: str) -> str:
    """Return a sentence without its introduction."""
    rest = _LEAD.sub("", _TAG.sub("", sentence), count=1).strip()
    return _capitalised(rest if len(rest.split()) >= FEWEST_WORDS else sentence)


def _capitalised(text: str) -> str:
    text = text.strip()
    first = text.split(" ", 1)[0] if text else ""
    return text[0].upper() + text[1:] if re.fullmatch(r"[a-z]+(?:'[a-z]+)?[,:]?", first) else text


def _is_decision(bare: str) -> bool:
    """Return whether a sentence that a user typed, without its quotations, decides something."""
    return any(one.search(bare) for one in _DECISIONS) and not _NOT_YET.search(bare)


def is_taken_back(sentence: str) -> bool:
    """Return whether a user undoes the last step without naming it."""
    return _TAKES_BACK.match(sentence) is not None


def _revoked(sentence: str) -> str:
    """Return what a sentence says not to use or do; '' for nothing."""
    found = _REVOKES.match(sentence)
    return found["what"] if found else ""


def _what_is_rejected(text: str) -> str:
    """Return what a rejection rejects, without the reason; '' if unclear."""
    for one in (_TRIED, *_REJECTIONS, _REVOKES):
        found = one.search(text)
        if found:
            return re.split(r"\b(?:because|since|but|for|as|in|due)\b|[,;:.]", found["what"])[0]
    return ""


def _rejection(sentence: str, following: str, *, by_user: bool) -> str:
    """Return the words of a rejection in a sentence, or in it and the following one; '' for none. Ignores quotations.
    An assistant tries many things: only an explicit "gave up" counts for it."""
    tried = _TRIED.search(sentence)
    if tried and _is_given_up(tried["rest"], by_user=by_user):
        return sentence
    if tried and _CONTINUES.match(following) and _is_given_up(following, by_user=by_user):
        return f"{sentence} {following}"
    return sentence if by_user and any(one.search(sentence) for one in _REJECTIONS) else ""


def _is_given_up(outcome: str, *, by_user: bool) -> bool:
    """Return whether the outcome of an attempt means a rejection, not a problem still to fix."""
    if _GIVES_UP.search(outcome):
        return True
    is_judged = _TOO_BAD.search(outcome) or (_FAILS.search(outcome) and _REASON.search(outcome))
    return by_user and bool(is_judged)
