"""Locations of memories: `memories/` in the home of an agent, a group or a person."""

import os

from ..history.store.location import StoreLocation
from ..history.store.values import Conversation
from ..sessions.runtimes.table import all_runtimes
from ..sessions.settings.homes import named_home


def folder_of(location: StoreLocation, home_name: str) -> str:
    """Return the memories directory of a group ('' for a store without groups)."""
    return location.home_for(home_name).memories_dir


def folders_of(location: StoreLocation) -> list[str]:
    """Return the memories directories that the caller may see."""
    return [folder_of(location, home_name) for home_name in location.home_names]


def is_untrusted(location: StoreLocation, conversation: Conversation) -> bool:
    """Return whether a rule marks the conversation's session as untrusted.

    The rule may use its name, title, id or group. Both the host's and the group's rules count.
    Raises ConfigError."""
    home_name = conversation.home
    home = location.home_for(home_name)
    names = [conversation.session_id, conversation.title]
    for runtime in all_runtimes():
        agent = named_home(home.root, os.environ, runtime.SESSIONS_FOLDER)
        if agent is not None:  # this runtime names sessions, and the root is an agent home
            others = runtime.other_sessions(
                agent.sessions_dir, runtime.config_dir(os.environ), "", "project"
            )
            names += [
                session.name
                for session in others
                if runtime.session_id_of(session.path) == conversation.session_id
            ]
    names += [conversation.source_file.partition("/")[0]]  # Pi names the session's folder
    names += [home_name] if home_name else []
    return home.settings().rule(*names).isolate_memories


def strategies_directory(location: StoreLocation) -> str:
    """Return the directory for strategies' own files, beside the store."""
    return f"{os.path.dirname(location.database)}/strategies"
