"""What was the same each time that a session had nothing to be told: while it is, no cursor has to be read.

With 1,000 other sessions that saves 0.4 x of a bare interpreter, with 50 of them 0.06 x: decoding the cursors, and what
takes their lock and makes an update of them. Kept is a text, which is only compared:

    the directory of git whose HEAD counts, '' for none; what `stat` says of HEAD
    where the session works, its transcript, how far it hears of others back, what `stat` says of its cursors
    of each other session its key, its inode, size and time
"""

from __future__ import annotations

from ..system.files import path_stamp, read_whole, stamp_of, write_private
from .changes import head_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..transcripts.cursor import Cursor
    from .changes import Observation, OwnSession

_SUFFIX = ".standstill"


class Standstill:
    """The state of all that decides whether the session `own` is told something, as it was `observed`."""

    def __init__(self, own: OwnSession, observed: Observation, first_sight_seconds: float) -> None:
        self._path = own.cursor_file.removesuffix(".json") + _SUFFIX
        self._head_counts = bool(own.directory)
        # Before the cursors are read: if they are replaced meanwhile, what is kept is never found again.
        lines = [f"{own.directory} {own.path} {first_sight_seconds} {path_stamp(own.cursor_file)}"]
        lines += [f"{session.key} {stamp_of(status)}" for session, status in observed.statuses]
        self._text = "\n".join(lines)

    def holds(self) -> bool:
        """Whether all is as it was when there was nothing to tell."""
        try:
            kept = read_whole(self._path).decode("utf-8", "surrogateescape")
        except OSError:
            return False
        git_dir = kept.partition("\n")[0]
        return kept == self._with_head(git_dir, head_stamp(git_dir) if git_dir else [])

    def keep(self, cursor: Cursor) -> None:
        """Notes that there was nothing to tell. `cursor` is the session's own, by which HEAD was known to be where it
        was."""
        git_dir, stamp = (cursor.get("git", ""), cursor.get("stamp", [])) if self._head_counts else ("", [])
        try:
            write_private(self._path, self._with_head(git_dir, stamp).encode("utf-8", "surrogateescape"))
        except OSError:  # as on a full disk: the next prompt reads the cursors again
            pass

    def _with_head(self, git_dir: str, stamp: list[int]) -> str:
        return f"{git_dir}\n{stamp}\n{self._text}"
