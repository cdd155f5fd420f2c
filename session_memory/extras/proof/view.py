"""Proof: updates that agents got, their effect, and the same moments without an update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ...history.costs import SessionFiles
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import Filter
from ._proof import prove
from .words import HEEDED, compared_lines, rows_of, sum_lines, told_lines


class StoreRequest(Protocol):
    """The part of the page's request that this view needs."""

    @property
    def store(self) -> SqliteStore: ...

    @property
    def location(self) -> StoreLocation: ...

    def while_wanted(self, items: Iterable[str]) -> Iterator[str]: ...


def _frame(request: StoreRequest) -> dict[str, Any]:
    """Return no values: the frame loads the rest."""
    return {}


def _counted(request: StoreRequest) -> dict[str, Any]:
    """Return the sections as the command prints them, and `rows` for the comparison."""

    def while_wanted(path: str, size: int) -> None:
        next(request.while_wanted([path]))

    files = SessionFiles(request.location.watched, request.store, Filter())
    proof = prove(request.store, Filter(), files, while_wanted)
    return {
        "sections": [("Updates that proved right", told_lines(proof)), ("Sums", sum_lines(proof))],
        "heeded": HEEDED,
        "rows": rows_of(proof),
        "about": compared_lines(proof),
        "sessions": proof.sessions,
        "missing": proof.missing,
    }


VIEWS = (
    ("proof", "/proof", _frame, "Proof", "o", "Look back"),
    ("proof_counted", "/proof/counted", _counted),
)
