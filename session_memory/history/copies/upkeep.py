"""Upkeep's step for kept transcripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from .keep import forget_kept, keep_sessions

if TYPE_CHECKING:
    from ...app.upkeep.run import Run

MOST_PROBLEMS = 3  # of transcripts that could not be kept


def keep(run: Run) -> None:
    """Copy new content of transcripts, if the settings ask for it. Raises SessionMemoryError, OSError."""
    if run.is_spent():
        return
    run.record.kept, problems = keep_sessions(run.store, run.location, run.is_spent)
    if problems:
        raise SessionMemoryError("; ".join(problems[:MOST_PROBLEMS]))


def forget(run: Run, sessions: list[list[str]]) -> None:
    """Delete the kept transcripts of sessions, each as (group, id).

    Raises SessionMemoryError, OSError."""
    forget_kept(run.location, sessions)
