"""The base class of runtimes whose sessions are read from mirrors.

These runtimes do not store sessions as files of lines that only grow.
"""

from __future__ import annotations

from ...common.system.files import is_file, status_at
from ...common.system.json import as_string
from ...common.text.paths import dashed
from ..transcripts.mirror import Exclusion, MirrorLook, has_changed
from .base import CopiedSessions, ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Event

_MOST_CHARACTERS = 200  # of the name of a folder


class MirroredSessions(CopiedSessions, ProjectFolders):
    """A runtime with a mirror for each session (see sessions/transcripts/mirror.py).

    The mirror is `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it.
    The runtime's module `mirrors` brings them up to date."""

    # if there are sessions, the runtime's directory contains at least one of these
    SOURCES: tuple[str, ...] = ("",)
    # the folder for mirrors of sessions whose directory is unknown
    NO_DIRECTORY = "unknown"

    def transcripts_dir(self, config_dir: str) -> str:
        return self.copies_root(config_dir)

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update the mirrors if a session has changed.

        A prompt reads only a limited amount."""
        if root := self._changed_root(config_dir, everything):
            self._update(config_dir, root, everything)

    def look(self, config_dir: str) -> None:
        if root := self._changed_root(config_dir):
            MirrorLook(root, lambda: self._update(config_dir, root)).run()

    def _changed_root(self, config_dir: str, everything: bool = False) -> str:
        """Return the directory of the mirrors if they may have to be updated; else ''."""
        if not any([status_at(config_dir + source) for source in self.SOURCES]):
            return ""
        root = self.copies_root(config_dir)
        return root if everything or has_changed(root) else ""

    def _update(self, config_dir: str, root: str, everything: bool = False) -> None:
        mirrors = __import__(f"{self.__module__}.mirrors", fromlist=["bring_up_to_date"])
        mirrors.bring_up_to_date(config_dir, root, Exclusion(self.home_of(config_dir)), everything)

    def watched_dirs(self, config_dir: str) -> list[str]:
        return [config_dir]

    def folder_name(self, directory: str) -> str:
        return dashed(directory)[:_MOST_CHARACTERS] or self.NO_DIRECTORY

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return the path of the mirror.

        A session stays in its folder even if it continues in another directory."""
        path = super().transcript_path(config_dir, cwd, session_id)
        return path if is_file(path) else self.transcript_of(config_dir, session_id) or path

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the path of the mirror, not of the runtime's own file, which an event may name."""
        return self.transcript_path(config_dir, start, as_string(event.get("session_id")))
