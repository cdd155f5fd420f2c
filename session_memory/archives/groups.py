"""The archives of a host's groups, and the pointers to their sessions, which are archived when they are cleared."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ..settings.host_layout import Group, Layout, held
from ..settings.privacy import Privacy
from ..transcripts.pointers import SessionManager
from .list import is_private_path, private_path, settle
from .writer import ArchiveSource, archive_session


def open_sessions(layout: Layout, now: Callable[[], float] = time.time) -> SessionManager:
    """Return the pointers to the sessions of a host's groups. Raises DatabaseError."""

    def archive(group: str, session_id: str, title: str) -> str | None:
        return archive_group_session(layout.group(group), session_id, now(), title)

    return SessionManager(layout.database, layout.group, archive, now)


def archive_group_session(group: Group, session_id: str, now: float, title: str = "") -> str | None:
    """Write or update the archive of a group's session, under `title` if given; return its path, None if there is
    nothing to archive. `now` is in seconds since the epoch. Symlinks that the agent may have made are not followed.
    Raises SessionMemoryError, OSError."""
    privacy = Privacy(os.environ, group.memory_home)
    with held(group) as place:
        settle(place.conversations_dir, privacy)
        source = ArchiveSource(session_id, place.transcript(session_id), group.runtime, group.name, title)
        archive = archive_session(source, place.conversations_dir, group.settings(), now, privacy=privacy)
    if archive and is_private_path(archive):
        return private_path(group.conversations_dir, os.path.basename(archive))
    return archive and f"{group.conversations_dir}/{os.path.basename(archive)}"
