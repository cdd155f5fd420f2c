"""Locations of memories: `memories/` in the home of an agent, a group or a person."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..runtimes import Runtime, all_runtimes
from ..settings.homes import Home, named_home
from ..store.location import StoreLocation
from ..store.values import Conversation


def folder_of(location: StoreLocation, group: str) -> str:
    """Return the memories directory of a group ('' for a store without groups)."""
    return location.home_for(group).memories_dir


def groups_of(location: StoreLocation) -> list[str]:
    """Return the groups whose memories the caller may see; [''] for a store without groups."""
    if location.homes is not None:
        return list(location.homes)
    groups = list(dict.fromkeys(watched.home for watched in location.watched))
    return groups or [""]


def is_untrusted(location: StoreLocation, conversation: Conversation) -> bool:
    """Return whether a rule marks the conversation's session as untrusted, by its name, title, id or group. Both the
    host's and the group's rules count. Raises ConfigError."""
    group = conversation.home
    home = location.home_for(group)
    names = [conversation.session_id, conversation.title, *_names_of(home.root, conversation)]
    names += [conversation.source_file.partition("/")[0]]  # Pi names the session's folder
    names += [group] if group else []
    return home.settings().rule(*names).isolate_memories


def strategies_directory(location: StoreLocation) -> str:
    """Return the directory for strategies' own files, beside the store."""
    return f"{os.path.dirname(location.database)}/strategies"


def _names_of(root: str, conversation: Conversation) -> list[str]:
    """Return the names that an agent uses for the session of a conversation."""
    return [
        session.name
        for runtime, home in _agent_homes(root)
        for session in runtime.other_sessions(home.sessions_dir, runtime.config_dir(os.environ), "", "project")
        if runtime.session_id_of(session.path) == conversation.session_id
    ]


def _agent_homes(root: str) -> Iterator[tuple[Runtime, Home]]:
    """Yield each runtime that names sessions, with its view of the agent home `root`; nothing if `root` is none."""
    for runtime in all_runtimes():
        folder = runtime.SESSIONS_FOLDER
        home = named_home(root, os.environ, folder)
        if home is not None:
            yield runtime, home
