"""Expressions of the search index (search/index.py) over postings that are at hand. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..search.item_lists import both, either, without
from ..search.terms import Terms

PostingsOf = Callable[[str, bool, list[int] | None], list[int]]

_TOKEN = re.compile(r'"(?P<word>[^"]*)"(?P<prefix> \*)?|(?P<sign>AND|OR|NOT|\(|\))')
_ALL_OF = re.compile(r'"[^"]*"(?: AND "[^"]*"(?! \*))+')
_JOINED = {"AND": both, "OR": either, "NOT": without}


def items_of(expression: str, terms: Terms, postings: PostingsOf) -> list[int]:
    """Return the items that match an expression, in order."""

    def rarest_first(words: re.Match[str]) -> str:
        """Order words that are all required so that joining them is cheap."""
        each = words[0].split(" AND ")
        return " AND ".join(sorted(each, key=lambda word: len(postings(terms.of_word(word[1:-1]), False, None))))

    tokens = list(_TOKEN.finditer(_ALL_OF.sub(rarest_first, expression)))
    if len(tokens) == 1:
        return postings(terms.of_word(tokens[0]["word"]), bool(tokens[0]["prefix"]), None)
    return _joined(tokens, 0, terms, postings)[0]


def _joined(tokens: list[re.Match[str]], at: int, terms: Terms, postings: PostingsOf) -> tuple[list[int], int]:
    """Return the items of the expression from `at` up to the end or a closing parenthesis, and the position behind it.
    An expression has one kind of operator, so that no precedence is needed."""
    found: list[int] = []
    sign = "OR"
    while at < len(tokens) and tokens[at]["sign"] != ")":
        token = tokens[at]
        if token["sign"] in _JOINED:
            sign = token["sign"]
        else:
            if token["sign"] == "(":
                one, at = _joined(tokens, at + 1, terms, postings)
            else:
                among = found if sign != "OR" else None
                one = postings(terms.of_word(token["word"]), bool(token["prefix"]), among)
            found = _JOINED[sign](found, one)
        at += 1
    return found, at
