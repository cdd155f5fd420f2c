"""Parses a typed query: words, "quoted phrases", and -excluded words. Pure; any text is a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...common.text.letters import compatible
from ...common.text.words import word_lists
from .index import Expression, Terms, Words, split_unspaced

LONGEST = 10_000
MOST_PARTS = 48
LEAST_VERBATIM = 4
_QUOTES = str.maketrans("“”„‟«»＂「」『』", '"' * 11)
_PIECE = re.compile(r'(?P<minus>(?<!\S)-(?=[^\s\-]))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_COMMIT = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,39}")  # shortened, as git shows it
# separates words, while other characters join them, as in `package.json`
_SEPARATORS = re.compile(r"[()\[\]{}<>,;:|=*`!?]+")

STOP_WORDS = word_lists()["stop words"]
_ASKS_FOR_LAST = {
    "last",
    "latest",
    "previous",
    "recent",
    "recently",
    "leave",
    "left",
    "stop",
    "stopped",
    "working",
}
_OF_SESSIONS = {
    "session",
    "sessions",
    "conversation",
    "conversations",
    "time",
    "work",
    "yesterday",
    "today",
    "week",
}


class Part(NamedTuple):
    """One part of a query: its words for the index, and its terms.

    A single character of a script without spaces is a prefix, and so is the shortened id of a
    commit. A text without terms is searched verbatim and has no words. `is_phrase` means that the
    terms must be in sequence, `is_required` that every hit must have the part."""

    words: Words
    terms: tuple[str, ...]
    is_phrase: bool = False
    is_required: bool = False


class Verbatim(NamedTuple):
    """A verbatim query: an expression that finds candidates, its `verbatim_form`, and its terms."""

    expression: Expression
    text: str
    terms: tuple[str, ...]


class Query(NamedTuple):
    """A parsed query.

    A hit must not have any of the words `unwanted`, nor the terms of `unwanted_phrases` in
    sequence. `verbatim` is set if the query is long enough to be a remembered sentence."""

    parts: tuple[Part, ...]
    unwanted: tuple[Words, ...]
    unwanted_phrases: tuple[tuple[str, ...], ...]
    verbatim: Verbatim | None = None


def verbatim_form(text: str) -> str:
    """Return `text` for comparison, without differences in case, letter forms and white space."""
    return " ".join(compatible(text).casefold().split())


def asks_for_last_work(text: str) -> bool:
    """Return whether a query asks only for the last work, without anything to look for.

    An example is "what were we working on in the last session?"."""
    words = set(_SEPARATORS.sub(" ", text.casefold()).replace(".", " ").split()) - STOP_WORDS
    return (
        bool(words & _ASKS_FOR_LAST)
        and len(text.split()) > 2
        and words <= _ASKS_FOR_LAST | _OF_SESSIONS
    )


def parse(text: str, terms: Terms) -> Query:
    """Parse `text`, and drop stop words unless it has no other words.

    `package.json` is one part with two terms."""
    words: list[str] = []
    parts: list[Part] = []
    unwanted: list[Words] = []
    unwanted_phrases: list[tuple[str, ...]] = []
    for piece in _PIECE.finditer(compatible(text[:LONGEST].translate(_QUOTES))):
        if piece["minus"]:
            part = _phrase(piece["phrase"] or piece["word"] or "", terms)
            if part and part.is_phrase:
                unwanted_phrases.append(part.terms)
            elif part:
                unwanted.append(part.words)
        elif piece["phrase"] is not None:
            part = _phrase(piece["phrase"], terms)
            parts += [part] if part else []
        else:
            words.append(piece["word"])
    parsed = _parts_of_words(words, terms, STOP_WORDS)
    if not parsed and not parts:
        parsed = _parts_of_words(words, terms, frozenset())
    unique = {part.terms: part for part in (*parsed, *parts)}
    chosen = tuple(unique.values())[-MOST_PARTS:]
    return Query(
        chosen,
        tuple(unwanted),
        tuple(unwanted_phrases),
        _verbatim(compatible(text[:LONGEST]), terms),
    )


def whole_expression(query: Query) -> Expression | None:
    """Return the whole query as one expression of the index; None if it has nothing to look up."""
    parts = [part for part in query.parts if part.words.each]
    required = tuple([part.words for part in parts if part.is_required])
    return (
        Expression(tuple([part.words for part in parts]), required, query.unwanted)
        if parts
        else None
    )


def alternatives(part: Part) -> list[Part]:
    """Return each term as a part of its own, for a second try if no item has a part's terms."""
    words = part.words.each
    return (
        [Part(Words((word,)), (term,)) for word, term in zip(words, dict.fromkeys(part.terms))]
        if words[1:]
        else []
    )


def relaxed(query: Query) -> Query:
    """Return the query without quotation marks, for a second try if no item has the phrases."""
    parts = {
        other.terms: other._replace(is_phrase=False, is_required=False)
        for part in query.parts
        for other in (alternatives(part) if part.is_required else []) or [part]
    }
    return query._replace(parts=tuple(parts.values()))


def contains(terms: list[str], phrase: tuple[str, ...]) -> bool:
    """Check if `terms` contains the terms of `phrase` in sequence."""
    return f" {' '.join(phrase)} " in f" {' '.join(terms)} "


def occurrences(part: Part, text: str, terms: list[str]) -> float:
    """Count how often a text that begins with `terms` has a part.

    Terms out of sequence count half."""
    if not part.words.each:
        return text.count(part.terms[0])
    if part.words.is_prefix:
        return sum([term.startswith(part.terms[0]) for term in terms]) or 1
    if len(part.terms) == 1:
        return terms.count(part.terms[0]) or 1
    return f" {' '.join(terms)} ".count(f" {' '.join(part.terms)} ") or 0.5


def literal_spans(text: str, literal: str) -> list[tuple[int, int, str]]:
    """Return each occurrence of `literal` in `text` as (start, end, text), like `Terms.spans`."""
    spans = []
    at = text.find(literal)
    while at >= 0:
        spans.append((at, at + len(literal), literal))
        at = text.find(literal, at + len(literal))
    return spans


def _verbatim(text: str, terms: Terms) -> Verbatim | None:
    words = text.casefold().split()
    whole = _phrase(text, terms)
    if whole is None or len(whole.terms) < LEAST_VERBATIM:
        return None
    content = _parts_of_words(words, terms, STOP_WORDS)[:MOST_PARTS]
    expression = Expression(required=tuple([part.words for part in content or [whole]]))
    return Verbatim(expression, " ".join(words).strip("\"'"), whole.terms)


def _parts_of_words(words: Iterable[str], terms: Terms, stop_words: frozenset[str]) -> list[Part]:
    parts = []
    for word in _SEPARATORS.sub(" ", " ".join(words)).split():
        for is_unspaced, _, piece in split_unspaced(word):
            if is_unspaced:
                parts += _parts_of_unspaced(piece, terms)
                continue
            spans = terms.spans(piece)
            kept = [span for span in spans if piece[span[0] : span[1]].lower() not in stop_words]
            if not kept and len(spans) > 1 and ("-" in piece or "_" in piece):
                kept = spans  # `to-do` is about something, `and/or` is not
            if kept:
                term_texts = {term: piece[start:end] for start, end, term in kept}
                is_prefix = len(term_texts) == 1 and bool(_COMMIT.fullmatch(piece))
                parts.append(Part(Words(tuple(term_texts.values()), is_prefix), tuple(term_texts)))
    return parts


def _parts_of_unspaced(run: str, terms: Terms) -> list[Part]:
    """Return a part for each pair of characters.

    A single character becomes one part for all terms that begin with it."""
    if len(run) == 1:
        return [Part(Words((run,), is_prefix=True), tuple(terms.of(run)))] if terms.of(run) else []
    parts = []
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        spans = [span for span in terms.spans(pair) if span[1] - span[0] > 1]
        if len(spans) == 1:
            parts.append(Part(Words((pair,)), (spans[0][2],)))
    return parts


def _phrase(text: str, terms: Terms) -> Part | None:
    """Return a quoted text as a part in which all words count; None if it has no words.

    The last character of a run without spaces is not a separate term there, because the run may
    continue in the text."""
    text = text.strip()
    pieces = split_unspaced(text)
    spans = terms.spans(text)
    if pieces and pieces[-1][0]:
        if len(text) == 1:
            return next(
                (part._replace(is_required=True) for part in _parts_of_unspaced(text, terms)), None
            )
        spans = [span for span in spans if span[0] < len(text) - 1]
    if not spans:
        return None
    words = {term: text[start:end] for start, end, term in spans}
    phrase_terms = tuple(term for *_, term in spans)
    return Part(
        Words(tuple(words.values())),
        phrase_terms,
        is_phrase=len(phrase_terms) > 1,
        is_required=True,
    )
