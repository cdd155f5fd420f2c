"""What the page shows of the team that was joined, where one was: asked for each request, and never for a list."""

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
    """Whether this machine is asked or the team; nothing to choose where none was joined."""
    pairs = (("", "This machine"), (TEAM, "The team"))
    return chosen_of(pairs, request.one("whose")) if team_of(request.location.home).url else []


def is_for_team(request: PageRequest) -> bool:
    """Whether the team is asked."""
    return any(one.is_chosen for one in whose(request) if one.value == TEAM)


def opened(request: PageRequest) -> AbstractContextManager[TeamStore]:
    """The team's store. Raises NoTeamError, TeamError."""
    return request.teams.store(joined_team(request.location.home).url)


def problem_with(error: TeamError) -> str:
    """What to say in place of what the team has."""
    return for_people(f"The team cannot be asked now: {error}.")


def directories_of(request: PageRequest, directories: Iterable[str]) -> tuple[str, ...]:
    """Directories on this machine as the team calls the projects that they are in."""
    home = request.location.home
    names = team_of(home).projects
    return tuple(sorted({project_of(directory, names, home.user_dir)[0] or directory for directory in directories}))
