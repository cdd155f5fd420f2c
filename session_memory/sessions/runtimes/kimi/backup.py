"""The files of Kimi Code's sessions, which it never deletes."""

from __future__ import annotations

from ..backup import Backup, files_below

_PASSING = ("logs/", "notify/")


class KimiCodeBackup(Backup):
    """A session is a folder: agents, earlier versions of edited files, and `state.json`."""

    def files_beside(self, path: str) -> list[str]:
        folder = self.runtime.folder_beside(path)
        files = files_below(folder) if folder else []
        passing = tuple([f"{folder}/{name}" for name in _PASSING])
        return [file for file in files if file != path and not file.startswith(passing)]
