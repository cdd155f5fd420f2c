"""The folders of transcripts that belong to one project, as an index keeps them, and whether that still holds.

Runtimes keep a folder of transcripts for each directory that sessions are started in. Which of them are of one
repository `project_folders` finds, once; a prompt only asks whether what it follows from is still the same.
"""

from __future__ import annotations

from ..system.files import path_stamp, read_whole
from ..system.json import unsealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtimes.contract import Folders


def kept_folders(start: str, index_file: str) -> Folders | None:
    """The folders in the index of the project of sessions that are started in `start`, each with the name of its
    worktree, '' for that of `start`. None where it has to be made anew."""
    index = read_index(index_file)
    try:
        if index["start"] == start and all([path_stamp(path) == stamp for path, stamp in index["stamps"]]):
            return index["folders"]  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError):
        pass
    return None


def read_index(index_file: str) -> dict[str, Any]:
    """The index of a project; empty where it cannot be read."""
    try:
        index = unsealed(read_whole(index_file))
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) else {}
