"""Values of the knowledge graph."""

from __future__ import annotations

from typing import NamedTuple


class GraphFact(NamedTuple):
    """A fact of the `graph` of this name: a relation between two things. It is true from `valid_at` to
    `invalid_at`; `expired_at` is when the graph learned that it ended. Times are ISO 8601, '' if
    unknown. `sessions` are the ids of its sessions."""

    id: str
    graph: str
    name: str
    fact: str
    valid_at: str
    invalid_at: str
    expired_at: str
    sessions: tuple[str, ...] = ()

    @property
    def times(self) -> str:
        """The first and last day of its validity, '' if unknown."""
        since = f"since {self.valid_at[:10]}" if self.valid_at else ""
        until = (
            f"until {self.invalid_at[:10]}"
            if self.invalid_at
            else "superseded"
            if self.expired_at
            else ""
        )
        return ", ".join([part for part in (since, until) if part])
