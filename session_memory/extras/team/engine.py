"""The engine of a shared store: the interface `SharedEngine` of memory/shared_store.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._sharing import joined_team, project_of, team_of, withdraw_forgotten
from .postgres.connection import PATIENCE_SECONDS
from .postgres.engine import TeamPool, TeamStore
from .postgres.memories import TeamMemories

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...history.store.location import StoreLocation
    from ...history.store.values import Visible
    from ...sessions.settings.homes import Home


def joined_url(home: Home) -> str:
    """Return the address of the team's store. Raises NoTeamError, ConfigError."""
    return joined_team(home).url


def project(home: Home, directory: str) -> str:
    """Return the team's name for a directory's project; '' if unknown."""
    return project_of(directory, team_of(home).projects, home.user_dir)[0]


def open_store(url: str, visible: Visible) -> TeamStore:
    """Open the team's store for a waiting user; it shows only `visible` rows. Raises TeamError."""
    return TeamStore(url, visible, seconds=PATIENCE_SECONDS)


def pool() -> TeamPool:
    """Return a new pool of connections."""
    return TeamPool()


def memories(store: TeamStore) -> TeamMemories:
    """Return the memories of a team's store."""
    return TeamMemories(store)


def withdraw(location: StoreLocation, memories: Mapping[str, Collection[str]]) -> None:
    """Delete this machine's memories, by home, from the team. Raises TeamError, ConfigError."""
    withdraw_forgotten(location, (), memories)
