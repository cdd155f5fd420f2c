"""The first bytes of transcripts, for the archives of one run.

An archive asks which transcripts beside its own begin alike. Each of 500 archives in a folder would
open 500 files, which took three quarters of the time of `archive --all`.
"""

from __future__ import annotations

from ...common.system.files import Opened, read_at
from ...sessions.runtimes.base import Runtime
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.gate import Family
from ...sessions.transcripts.lines import BLOCK_BYTES

_MOST_BYTES = 32 * 1024 * 1024  # of all that is remembered; further files are read each time
_LONGEST_MARK = 256


class Beginnings:
    """The transcripts of each folder and their first megabyte, as a run saw them first."""

    def __init__(self) -> None:
        self.paths: dict[tuple[str, str], list[str]] = {}  # by the runtime and the folder
        self._content: dict[str, bytes] = {}
        self._room = _MOST_BYTES

    def of(self, path: str) -> bytes | None:
        """Return the first bytes of a transcript; None without room for it. Raises OSError."""
        content = self._content.get(path)
        if content is None and self._room > 0:
            with Opened(path) as descriptor:
                content = read_at(descriptor, 0, BLOCK_BYTES + _LONGEST_MARK)
            self._room -= len(content)
            self._content[path] = content
        return content


class ArchivedFamily(Family):
    """A family that shares what it reads with a run's other archives."""

    def __init__(
        self,
        privacy: Privacy,
        runtime: Runtime,
        path: str,
        names: dict[str, list[str]],
        beginnings: Beginnings,
    ) -> None:
        super().__init__(privacy, runtime, path, names)
        self._beginnings = beginnings
        depth = 1 if runtime.HAS_PROJECT_FOLDERS else runtime.DEEPEST
        self._folder = runtime.name, path.rsplit("/", depth)[0]

    def siblings(self) -> list[str]:
        paths = self._beginnings.paths
        if self._folder not in paths:
            paths[self._folder] = super().siblings()
        return paths[self._folder]

    def holds(self, sibling: str, mark: bytes, limit: int) -> bool:
        if 0 < limit <= BLOCK_BYTES and len(mark) <= _LONGEST_MARK:
            content = self._beginnings.of(sibling)
            if content is not None:
                return content.find(mark, 0, BLOCK_BYTES + len(mark) - 1) >= 0
        return super().holds(sibling, mark, limit)
