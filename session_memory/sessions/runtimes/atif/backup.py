"""The files of ATIF sessions."""

from __future__ import annotations

from collections.abc import Iterator

from ..backup import Backup, FilesOfSession, SessionFile
from .mirrors import find_trajectories, session_of


class AtifBackup(Backup):
    """A session is its trajectory."""

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for source in find_trajectories(config_dir)[1]:
            session_id = session_of(source)
            if session_id:
                yield FilesOfSession(session_id, [SessionFile(source.key, source.path)])
