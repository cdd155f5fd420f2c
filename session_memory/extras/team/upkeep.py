"""Upkeep's step for the team: new content is pushed to it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError, described
from ...common.text.format import one_line
from ...common.text.sanitize import for_people
from ...history.store.refresh import open_store
from ._sharing import note_problem, push_to_team, withdraw_forgotten

if TYPE_CHECKING:
    from ...app.upkeep.run import Run


def push(run: Run) -> None:
    """Push new content, if the home has joined a team. Raises OSError.

    After a failure it waits; each problem is logged once."""
    home = run.location.home
    if not home.settings().team.get("url") or run.is_spent():
        return
    with closing(open_store(run.location)) as store:
        try:
            push_to_team(store, run.location, run.note, run.is_spent)
        except SessionMemoryError as error:
            problem = one_line(for_people(described(error)))
            if note_problem(home, problem):
                run.note(f"team: {problem}")


def forget(run: Run, given: dict[str, Any]) -> None:
    """Delete `sessions` and `memories` from the team that the home has joined.

    Sessions are given as (home, id), memories by home. Raises SessionMemoryError."""
    if run.location.home.settings().team.get("url"):
        sessions = {(home, id) for home, id in given["sessions"]}
        withdraw_forgotten(run.location, sessions, given["memories"])
