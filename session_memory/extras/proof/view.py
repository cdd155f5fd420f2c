"""Proof: what was told, what came of it, and the same moments without a report; what the coin held
back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from ...awareness.events.delivery_state import every_draw
from ...common.text.sanitize import for_people
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import Filter
from . import prove
from .words import HEEDED, compared_lines, rows_of, sum_lines, told_lines


class StoreRequest(Protocol):
    """The part of the page's request that this view needs."""

    @property
    def store(self) -> SqliteStore: ...

    @property
    def location(self) -> StoreLocation: ...

    @property
    def environ(self) -> Mapping[str, str]: ...

    def while_wanted(self, found: Iterable[str]) -> Iterator[str]: ...


def frame(request: StoreRequest) -> dict[str, Any]:
    """Return no values: the frame loads the rest."""
    return {}


def counted(request: StoreRequest) -> dict[str, Any]:
    """Return the sections as the command prints them, `rows` for the comparison, and what was held
    back."""
    location = request.location
    home = location.home.root if location.home.sessions_dir else None

    def while_wanted(path: str, size: int) -> None:
        next(request.while_wanted([path]))

    drawn = every_draw(location.home, home, request.environ)
    proof = prove(location, request.store, Filter(), drawn, while_wanted)
    return {
        "sections": [("Updates that proved right", told_lines(proof)), ("Sums", sum_lines(proof))],
        "heeded": HEEDED,
        "rows": rows_of(proof),
        "about": compared_lines(proof),
        "withheld": [(one.own.id, for_people(one.own.name), one.words) for one in proof.withheld],
        "sessions": proof.sessions,
        "missing": proof.missing,
    }


VIEWS = (
    ("proof", "/proof", frame, "Proof", "o"),
    ("proof_counted", "/proof/counted", counted),
)
