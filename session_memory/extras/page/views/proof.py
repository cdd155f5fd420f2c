"""Proof: what was told, what came of it, and the same moments without a report; what the coin held
back."""

from __future__ import annotations

from typing import Any

from ....awareness.events.delivery_state import every_draw
from ....common.text.sanitize import for_people
from ....history.store.values import Filter
from ...proof import prove
from ...proof.words import HEEDED, compared_lines, rows_of, sum_lines, told_lines
from .._page_request import PageRequest
from .._view import View, frame


def counted(request: PageRequest) -> dict[str, Any]:
    """Return the sections as the command prints them, `rows` for the comparison, and what was held
    back."""
    location = request.location
    home = location.home.root if location.home.sessions_dir else None

    def while_wanted(path: str, size: int) -> None:
        next(request.while_wanted([path]))

    drawn = every_draw(location.home, home, request.environ)
    proof = prove(location, request.store, Filter(location.homes), drawn, while_wanted)
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
    View("proof", "/proof", frame, "Proof", "o"),
    View("proof_counted", "/proof/counted", counted),
)
