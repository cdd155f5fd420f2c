"""The files of Cline's sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ....common.system.files import names_in
from ..backup import Backup, FilesOfSession, SessionFile, files_below
from .mirrors import ENDING, SESSIONS


class ClineBackup(Backup):
    """A session is the folder with its id; the document of the session itself is the first file."""

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for session_id in names_in(f"{config_dir}/{SESSIONS}"):
            main = f"{config_dir}/{SESSIONS}/{session_id}/{session_id}{ENDING}"
            paths = files_below(os.path.dirname(main))
            if main in paths:
                every = [main, *[path for path in paths if path != main]]
                files = [SessionFile(os.path.relpath(path, config_dir), path) for path in every]
                yield FilesOfSession(session_id, files)
