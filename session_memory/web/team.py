"""The page's view of the joined team, if any: queried for each request, and never for a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.sanitize import for_people
from ..upkeep.team import joined_team, project_of, team_of
from .choices import chosen_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from ..store.postgres.connection import TeamError
    from ..store.postgres.engine import TeamStore
    from .choices import Choice
    from .page_request import PageRequest

TEAM = "team"  # as the value of `whose`


def whose(request: PageRequest) -> list[Choice]:
    """Return the choice between this machine and the team; no choices without a team."""
    pairs = (("", "This machine"), (TEAM, "The team"))
    return chosen_of(pairs, request.one("whose")) if team_of(request.location.home).url else []


def is_for_team(request: PageRequest) -> bool:
    """Return whether the request is about the team."""
    return any(one.is_chosen for one in whose(request) if one.value == TEAM)


def opened(request: PageRequest) -> AbstractContextManager[TeamStore]:
    """Return the team's store. Raises NoTeamError, TeamError."""
    return request.teams.store(joined_team(request.location.home).url)


def problem_with(error: TeamError) -> str:
    """Return the message to show in place of the team's data."""
    return for_people(f"The team cannot be asked now: {error}.")


def directories_of(request: PageRequest, directories: Iterable[str]) -> tuple[str, ...]:
    """Return the team's names for the projects of local directories."""
    home = request.location.home
    names = team_of(home).projects
    return tuple(sorted({project_of(directory, names, home.user_dir)[0] or directory for directory in directories}))
