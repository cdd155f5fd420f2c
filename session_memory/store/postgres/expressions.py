"""Expressions of the search index (search/index.py) over postings that are at hand. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..search.terms import Terms

    # Of a term, or of all terms that begin with it: the items, in order.
    PostingsOf = Callable[[str, bool], list[int]]

_TOKEN = re.compile(r'"(?P<word>[^"]*)"(?P<prefix> \*)?|(?P<sign>AND|OR|NOT|\(|\))')
_JOINED = {
    "AND": lambda one, other: one & other,
    "OR": lambda one, other: one | other,
    "NOT": lambda one, other: one - other,
}


def items_of(expression: str, terms: Terms, postings: PostingsOf) -> list[int]:
    """The items that match an expression, in order."""
    tokens = list(_TOKEN.finditer(expression))
    if len(tokens) == 1:
        return postings(terms.of_word(tokens[0]["word"]), bool(tokens[0]["prefix"]))
    found, _ = _joined(tokens, 0, terms, postings)
    return sorted(found)


def _joined(tokens: list[re.Match[str]], at: int, terms: Terms, postings: PostingsOf) -> tuple[set[int], int]:
    """The items of what stands from `at` on up to the end or a closing parenthesis, and where that is. An expression
    joins with one kind of sign at a time, so that none binds closer than another."""
    found: set[int] = set()
    sign = "OR"
    while at < len(tokens) and tokens[at]["sign"] != ")":
        token = tokens[at]
        if token["sign"] in _JOINED:
            sign = token["sign"]
        else:
            if token["sign"] == "(":
                one, at = _joined(tokens, at + 1, terms, postings)
            else:
                one = set(postings(terms.of_word(token["word"]), bool(token["prefix"])))
            found = _JOINED[sign](found, one)
        at += 1
    return found, at
