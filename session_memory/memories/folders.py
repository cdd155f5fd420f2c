"""Where memories lie: in `memories/` of an agent's or a group's home, or of a person's place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..runtimes import all_runtimes
from ..settings.homes import Home, named_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtimes import Runtime
    from ..store.location import StoreLocation
    from ..store.values import Conversation


def folder_of(location: StoreLocation, group: str) -> str:
    """The directory with the memories of a group of the store ('' where it knows no groups)."""
    return home_of(location, group).memories_dir


def home_of(location: StoreLocation, group: str = "") -> Home:
    """The home of a group whose entries the store holds, or the one that the store belongs to."""
    return location.home_for(group)


def groups_of(location: StoreLocation) -> list[str]:
    """The groups whose memories whoever asks may see; [''] where there are none."""
    if location.homes is not None:
        return list(location.homes)
    groups = list(dict.fromkeys(watched.home for watched in location.watched))
    return groups or [""]


def is_untrusted(location: StoreLocation, conversation: Conversation) -> bool:
    """Whether a rule marks the session of a conversation so: by its name, title or id, or by its group; a rule of the
    host's, or of the group's own. Raises ConfigError."""
    group = conversation.home
    names = [conversation.session_id, conversation.title, *_names_of(home_of(location, group).root, conversation)]
    names += [conversation.source_file.partition("/")[0]]  # where Pi has a folder for each name
    names += [group] if group else []
    return home_of(location, group).settings().rule(*names).untrusted


def strategies_directory(location: StoreLocation) -> str:
    """Where strategies keep things of their own: beside the store."""
    return f"{os.path.dirname(location.database)}/strategies"


def _names_of(root: str, conversation: Conversation) -> list[str]:
    """The names by which an agent knows the session of a conversation."""
    return [
        session.name
        for runtime, home in _agent_homes(root)
        for session in runtime.other_sessions(home.sessions_dir, runtime.config_dir(os.environ), "", "project")
        if runtime.session_id_of(session.path) == conversation.session_id
    ]


def _agent_homes(root: str) -> Iterator[tuple[Runtime, Home]]:
    """The agent home `root`, if it is one, as each runtime that names sessions in it sees it."""
    for runtime in all_runtimes():
        folder = runtime.SESSIONS_FOLDER
        home = named_home(root, os.environ, folder)
        if home is not None:
            yield runtime, home
