"""Parses a typed query: words, "quoted phrases", and -excluded words. Pure; any text is a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...text.words import word_lists
from .index import Terms, split_unspaced

LONGEST = 10_000
MOST_PARTS = 48
LEAST_VERBATIM = 4
_QUOTES = str.maketrans("“”„‟«»＂「」『』", '"' * 11)
_PIECE = re.compile(r'(?P<minus>(?<!\S)-(?=[^\s\-]))?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_SEPARATORS = re.compile(r"[()\[\]{}<>,;:|=*`!?]+")  # separates words, unlike what joins them, as in `package.json`

STOP_WORDS = word_lists()["stop words"]
_ASKS_FOR_LAST = {"last", "latest", "previous", "recent", "recently", "leave", "left", "stop", "stopped", "working"}
_OF_SESSIONS = {"session", "sessions", "conversation", "conversations", "time", "work", "yesterday", "today", "week"}


class Part(NamedTuple):
    """One part of a query: its expression for the index ('' for a text without terms) and its terms. `is_phrase`: the
    terms must be in sequence. `is_required`: every hit must have the part."""

    match: str
    terms: tuple[str, ...]
    is_phrase: bool = False
    is_required: bool = False

    @property
    def is_prefix(self) -> bool:
        """Check if the part matches every term that begins with it: a single character of a script without spaces."""
        return self.match.endswith("*")

    @property
    def is_literal(self) -> bool:
        """Check if the part is searched for verbatim, since it has no terms."""
        return not self.match


class Verbatim(NamedTuple):
    """A query verbatim: the expression for candidates, its text in the casefolded form that is compared, its terms."""

    match: str
    text: str
    terms: tuple[str, ...]


class Query(NamedTuple):
    """A parsed query. `unwanted` is the expression of words that no hit may have ('' for none), `unwanted_phrases` the
    terms of such phrases. `verbatim` is set if the query is long enough to be a remembered sentence."""

    parts: tuple[Part, ...]
    unwanted: str
    unwanted_phrases: tuple[tuple[str, ...], ...]
    verbatim: Verbatim | None = None


def asks_for_last_work(text: str) -> bool:
    """Return whether a query names nothing to look for, but asks what was done last, as "what were we working on in the
    last session?"."""
    words = set(_SEPARATORS.sub(" ", text.casefold()).replace(".", " ").split()) - STOP_WORDS
    return bool(words & _ASKS_FOR_LAST) and len(text.split()) > 2 and words <= _ASKS_FOR_LAST | _OF_SESSIONS


def parse(text: str, terms: Terms) -> Query:
    """Parse `text`, without stop words unless it has no others. `package.json` is one part with two terms."""
    words: list[str] = []
    parts: list[Part] = []
    unwanted: list[str] = []
    unwanted_phrases: list[tuple[str, ...]] = []
    for piece in _PIECE.finditer(text[:LONGEST].translate(_QUOTES)):
        if piece["minus"]:
            part = _phrase(piece["phrase"] or piece["word"] or "", terms)
            if part and part.is_phrase:
                unwanted_phrases.append(part.terms)
            elif part:
                unwanted.append(part.match)
        elif piece["phrase"] is not None:
            part = _phrase(piece["phrase"], terms)
            parts += [part] if part else []
        else:
            words.append(piece["word"])
    found = _parts_of_words(words, terms, STOP_WORDS)
    if not found and not parts:
        found = _parts_of_words(words, terms, frozenset())
    unique = {part.terms: part for part in (*found, *parts)}
    chosen = tuple(unique.values())[-MOST_PARTS:]
    return Query(chosen, " OR ".join(unwanted), tuple(unwanted_phrases), _verbatim(text, terms))


def whole_expression(query: Query) -> str:
    """Return the whole query as one expression of the index; '' if it has nothing to look up."""
    match = " OR ".join([f"({part.match})" for part in query.parts if part.match])
    if not match:
        return ""
    for part in query.parts:
        if part.is_required and part.match:
            match = f"({match}) AND ({part.match})"
    return f"({match}) NOT ({query.unwanted})" if query.unwanted else match


def alternatives(part: Part) -> list[Part]:
    """Return a part for each term of a part with several, to be tried if nothing has all of them."""
    matches = part.match.split(" AND ")
    return [Part(match, (term,)) for match, term in zip(matches, dict.fromkeys(part.terms))] if matches[1:] else []


def relaxed(query: Query) -> Query:
    """Return the query without quotation marks, to be tried if nothing has the phrases."""
    parts = {
        other.terms: other._replace(is_phrase=False, is_required=False)
        for part in query.parts
        for other in (alternatives(part) if part.is_required else []) or [part]
    }
    return query._replace(parts=tuple(parts.values()))


def contains(terms: list[str], phrase: tuple[str, ...]) -> bool:
    """Check if `terms` contains those of `phrase` in sequence."""
    return f" {' '.join(phrase)} " in f" {' '.join(terms)} "


def occurrences(part: Part, text: str, terms: list[str]) -> float:
    """Count a part in a text of which `terms` are the beginning. Terms out of sequence there count half."""
    if part.is_literal:
        return text.count(part.terms[0])
    if part.is_prefix:
        return sum([term[0] == part.terms[0] for term in terms]) or 1
    if len(part.terms) == 1:
        return terms.count(part.terms[0]) or 1
    return f" {' '.join(terms)} ".count(f" {' '.join(part.terms)} ") or 0.5


def literal_spans(text: str, literal: str) -> list[tuple[int, int, str]]:
    """Return each occurrence of `literal` in `text`: start, end and text, as `Terms.spans` does."""
    spans = []
    at = text.find(literal)
    while at >= 0:
        spans.append((at, at + len(literal), literal))
        at = text.find(literal, at + len(literal))
    return spans


def _verbatim(text: str, terms: Terms) -> Verbatim | None:
    words = text[:LONGEST].casefold().split()
    whole = _phrase(text[:LONGEST], terms)
    if whole is None or len(whole.terms) < LEAST_VERBATIM:
        return None
    content = _parts_of_words(words, terms, STOP_WORDS)[:MOST_PARTS]
    match = " AND ".join([part.match for part in content]) or whole.match
    return Verbatim(match, " ".join(words).strip("\"'"), whole.terms)


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
                matches = {term: f'"{piece[start:end]}"' for start, end, term in kept}
                parts.append(Part(" AND ".join(matches.values()), tuple(matches)))
    return parts


def _parts_of_unspaced(run: str, terms: Terms) -> list[Part]:
    """Return a part for each pair of characters; for a single character, one for all terms that begin with it."""
    if len(run) == 1:
        return [Part(f'"{run}" *', tuple(terms.of(run)))] if terms.of(run) else []
    parts = []
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        spans = [span for span in terms.spans(pair) if span[1] - span[0] > 1]
        if len(spans) == 1:
            parts.append(Part(f'"{pair}"', (spans[0][2],)))
    return parts


def _phrase(text: str, terms: Terms) -> Part | None:
    """Return a quoted text, all of whose words count; None if there are none. The last character of a run without
    spaces is no term of its own there, since the run may continue."""
    text = text.strip()
    pieces = split_unspaced(text)
    spans = terms.spans(text)
    if pieces and pieces[-1][0]:
        if len(text) == 1:
            return next((part._replace(is_required=True) for part in _parts_of_unspaced(text, terms)), None)
        spans = [span for span in spans if span[0] < len(text) - 1]
    if not spans:
        return None
    matches = {term: f'"{text[start:end]}"' for start, end, term in spans}
    found = tuple(term for *_, term in spans)
    return Part(" AND ".join(matches.values()), found, is_phrase=len(found) > 1, is_required=True)
