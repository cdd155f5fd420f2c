"""Values of the knowledge graph."""

from __future__ import annotations

from typing import NamedTuple

_SESSIONS = 3  # shown of a fact


class GraphFact(NamedTuple):
    """A fact: a relation between two things, in the group `graph` of a project.

    It is true from `valid_at` to `invalid_at`; `expired_at` is when the graph recorded its end.
    Times are ISO 8601, '' if unknown. `sessions` are the ids of its sessions; `said_at` is when it
    was last said there."""

    id: str
    graph: str
    name: str
    fact: str
    valid_at: str
    invalid_at: str
    expired_at: str
    sessions: tuple[str, ...] = ()
    said_at: str = ""

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

    @property
    def source(self) -> str:
        """Its sessions, and the day on which it was last said there; '' if unknown."""
        ids = [id for id in self.sessions if id]
        more = f" and {len(ids) - _SESSIONS} more" if len(ids) > _SESSIONS else ""
        day = f", {self.said_at[:10]}" if self.said_at else ""
        return f"said in {', '.join(ids[:_SESSIONS])}{more}{day}" if ids else ""
