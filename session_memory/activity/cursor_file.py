"""Where reading resumes: one cursor a session, and the locked file they lie in.

The file is JSON, `consuming session -> other session -> cursor`:

    {"main": {"discord": {"offset": 12345, "size": 12345, "inode": 77, "mtime": ..., "head": ..., "tail": ..., ...}}}

Only `offset` must be there; `transcripts/cursor` tells what the rest is for. Among the cursors of a consuming session
stands, under LAST, what it was told last: see `acknowledgement`.
"""

from __future__ import annotations

from ..system.files import lock, move_away, os, read_whole, replace, write_private
from ..system.json import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..transcripts.cursor import Cursor

LOCK_WAIT_SECONDS = 0.2
LAST = " last"  # no session has such a name
LAST_SECOND = 253_402_300_800  # of the year 9999: no record is younger
_NOTE_BYTES = 64


def collision_path(cursor_file: str) -> str:
    """The file beside the cursors with what is kept of collisions."""
    return cursor_file.removesuffix(".json") + ".collisions"


class KnownCursors:
    """The cursors in the file at `path`, as they lie there: it is replaced in one step.

    `cursors` maps consuming session to other session to cursor; `was_corrupt` tells that the file could not be read,
    `written` when it was written then, in seconds since the epoch.
    """

    def __init__(self, path: str) -> None:
        """Raises OSError where the file cannot be had."""
        self.path = path
        self.cursors: dict[str, dict[str, Cursor]] = {}
        self.was_corrupt = False
        self.written = 0.0
        try:
            cursors = decode(read_whole(path).decode())
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            cursors = None
        if _is_well_formed(cursors):
            self.cursors = cursors
        else:
            self.written = os.stat(path, follow_symlinks=False).st_mtime
            self.was_corrupt = True


class CursorFile(KnownCursors):
    """The cursors of one file, under an exclusive lock until `close`. One that could not be read is set aside as
    `<name>.corrupt`."""

    def __init__(self, path: str) -> None:
        """Raises LockedError after LOCK_WAIT_SECONDS, OSError where the file cannot be had."""
        self._lock = lock(path + ".lock", LOCK_WAIT_SECONDS)
        try:
            super().__init__(path)
            if self.was_corrupt:
                move_away(path)
        except BaseException:
            self.close()
            raise

    def prepare(self) -> None:
        """Writes the cursors beside the file. What can fail (a full disk) fails here, before anything is told."""
        write_private(self.path + ".tmp", encode(self.cursors).encode())

    def commit(self) -> None:
        """Puts what `prepare` wrote in place, in one step. Not synced: a lost cursor only repeats itself."""
        replace(self.path + ".tmp", self.path)

    def is_first_to_answer(self, prompt: str) -> bool:
        """Whether no other copy of our hook has answered this prompt; notes in the lock's file that it is. Raises
        OSError."""
        note = prompt.encode()[:_NOTE_BYTES]
        if not note or not hasattr(os, "pread"):
            return True
        if os.pread(self._lock, _NOTE_BYTES, 0) == note:
            return False
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, note, 0)
        return True

    def forget_titles(self, keys: Collection[str]) -> None:
        """Delete the titles of sessions with these keys. Raises OSError."""
        kept = encode(self.cursors)
        for own in self.cursors.values():
            for cursors in (own, own.get(LAST, {}).get("cursors", {})):
                for cursor in [cursors[key] for key in keys if key in cursors]:
                    cursor.pop("title", None)
                    cursor.pop("own_title", None)
        if encode(self.cursors) != kept:
            self.prepare()
            self.commit()

    def close(self) -> None:
        """Releases the lock; the kernel does so for a process that dies."""
        os.close(self._lock)


def _is_well_formed(cursors: object) -> bool:
    return isinstance(cursors, dict) and all(map(are_cursors, cursors.values()))


def are_cursors(value: object) -> bool:
    """Whether a value holds cursors by the key of their session: all have an offset."""
    return isinstance(value, dict) and all(
        isinstance(cursor, dict) and isinstance(cursor.get("offset"), int) for cursor in value.values()
    )


def is_whole(cursor: Cursor) -> bool:
    """Whether every part of a cursor is what such a part can be; one that is not is as good as none."""
    numbers = [cursor.get(name, 0) for name in ("offset", "size", "inode", "mtime", "head", "tail")]
    title, ids, seen = cursor.get("title", [0, ""]), cursor.get("ids", []), cursor.get("seen", 0)
    unread = cursor.get("unread", [])
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(ids, list)
        and all(type(one) is int for one in ids)
        and _is_time(seen)
        and isinstance(unread, list)
        and all(map(_is_part, unread))
        and isinstance(title, list)
        and [type(part) for part in title] == [int, str]
        and all(isinstance(cursor.get(name, ""), str) for name in ("first", "directory", "git", "branch"))
    )


def _is_part(part: object) -> bool:
    """Check for a part of a file that was left unread: from which byte to which, and since which time it counts."""
    if not isinstance(part, list) or len(part) != 3 or not _is_time(part[2]):
        return False
    return type(part[0]) is type(part[1]) is int and 0 <= part[0] <= part[1]


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= LAST_SECOND  # type: ignore[operator]
