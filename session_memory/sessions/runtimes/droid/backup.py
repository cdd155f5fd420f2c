"""The files of Droid's sessions, which it never deletes."""

from __future__ import annotations

import os

from ..backup import Backup


class DroidBackup(Backup):
    """A session is `<id>.jsonl` and its settings, which name the model, in files beside it."""

    def files_beside(self, path: str) -> list[str]:
        stem = path.removesuffix(".jsonl")
        beside = [f"{stem}.settings.json", f"{stem}.settings.json.bak"]
        return [file for file in beside if os.path.isfile(file) and not os.path.islink(file)]
