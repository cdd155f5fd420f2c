"""Where memories lie: in `memories/` of an agent's or a group's home, for a person in `~/.session-memory/memories/`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..runtimes import all_runtimes
from ..settings.homes import MEMORY_DIR, Home, agent_home
from .keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtimes import Runtime
    from ..store.place import StorePlace
    from ..store.values import Conversation

FOLDER = "memories"


def folder_of(place: StorePlace, group: str) -> str:
    """The directory with the memories of a group of the store ('' where it knows no groups)."""
    root = home_of(place, group).root
    if group or _is_agent(root):
        return f"{root}/{FOLDER}"
    return f"{root}/{MEMORY_DIR}/{FOLDER}"


def home_of(place: StorePlace, group: str = "") -> Home:
    """The home that a group's entries come from, or the one that the store lies in."""
    directory = os.path.dirname(os.path.dirname(place.database))
    if group:
        return Home(f"{directory}/groups/{group}")
    return Home(os.path.dirname(directory) if os.path.basename(directory) == MEMORY_DIR else directory)


def groups_of(place: StorePlace) -> list[str]:
    """The groups whose memories whoever asks may see; [''] where there are none."""
    if place.homes is not None:
        return list(place.homes)
    groups = list(dict.fromkeys(watched.home for watched in place.watched))
    return groups or [""]


def keeper(place: StorePlace) -> Keeper:
    """What keeps the memories that are made of a store's conversations."""

    return Keeper(
        place.database, lambda group: folder_of(place, group), lambda conversation: is_untrusted(place, conversation)
    )


def is_untrusted(place: StorePlace, conversation: Conversation) -> bool:
    """Whether a rule marks the session of a conversation so: by its name, title or id, or by its group; a rule of the
    host's, or of the group's own. Raises ConfigError."""
    group = conversation.home
    names = [conversation.session_id, conversation.title, *_names_of(home_of(place, group).root, conversation)]
    homes = [home_of(place), home_of(place, group)] if group else [home_of(place)]
    names += [conversation.source_file.partition("/")[0]]  # where Pi has a folder for each name
    names += [group] if group else []
    return any(bool(home.settings().rule(*names).untrusted) for home in homes)


def strategies_directory(place: StorePlace) -> str:
    """Where strategies keep things of their own: beside the store."""
    return f"{os.path.dirname(place.database)}/strategies"


def _is_agent(root: str) -> bool:
    return any(True for _ in _agent_homes(root))


def _names_of(root: str, conversation: Conversation) -> list[str]:
    """The names by which an agent knows the session of a conversation."""
    return [
        session.name
        for runtime, home in _agent_homes(root)
        for session in runtime.FILES.others(home.sessions_dir, runtime.FILES.config_dir(os.environ), "", "project")
        if runtime.FILES.session_id_of(session.path) == conversation.session_id
    ]


def _agent_homes(root: str) -> Iterator[tuple[Runtime, Home]]:
    """The agent home `root`, if it is one, as each runtime that names sessions in it sees it."""
    for runtime in all_runtimes():
        home = agent_home(root, os.path.dirname(root), runtime.FILES.SESSIONS_FOLDER)
        if home is not None:
            yield runtime, home
