"""State of a session between its prompts: cursors in the other transcripts, the last delivery, and
collisions.

The file is JSON, `consuming session -> other session -> cursor`, written in one step under a lock:

    {"main": {"discord": {"offset": 12345, "size": 12345, "inode": 77, "mtime": ..., "head": ...,
    "tail": ..., ...}}}

Only `offset` must be there; `transcripts/lines` explains the rest. Among the cursors of a session
stand, under names that no session has, LAST (see `delivery`), COLLISIONS (see
`collisions/working_set`; sealed with a checksum) and MEMORIES (the ids of those that were injected
since the last compaction). The first key may be STANDSTILL (see `changes`)."""

from __future__ import annotations

from ...common.system.files import is_file, lock, move_away, os, read_whole, replace, write_private
from ...common.system.json import decode, encode
from .changes import STANDSTILL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...sessions.transcripts.lines import Cursor

    # by the key of the session that was read: a Cursor; the values of the names below differ
    Cursors = dict[str, Any]

LOCK_WAIT_SECONDS = 0.2
LAST, COLLISIONS, MEMORIES = " last", " collisions", " memories"  # no session has such a name
LAST_SECOND = 253_402_300_800  # of the year 9999: no record is younger
_NOTE_BYTES = 64


class KnownState:
    """State in the file at `path`, without the lock: the file is replaced in one step. `cursors`
    maps consuming session to other session to cursor; `was_corrupt` says that the file could not be
    read, `written` when it was written then, in seconds since the epoch."""

    def __init__(self, path: str) -> None:
        """Raises OSError if the file is not accessible."""
        self.path = path
        self.cursors: dict[str, Cursors] = {}
        self.was_corrupt = False
        self.standstill: object = None
        self.written = 0.0
        try:
            cursors = decode(read_whole(path).decode())
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            cursors = None
        if isinstance(cursors, dict):
            self.standstill = cursors.pop(STANDSTILL, None)
        if isinstance(cursors, dict) and all(map(are_cursors, cursors.values())):
            self.cursors = cursors
        else:
            self.written = os.stat(path, follow_symlinks=False).st_mtime
            self.was_corrupt = True

    def is_new(self, key: str) -> bool:
        """Check that nothing was delivered to a consuming session yet."""
        return self.cursors.get(key, {MEMORIES: []}).keys() == {MEMORIES}

    def of(self, key: str) -> Cursors:
        """Return the state of a consuming session."""
        return self.cursors.get(key, {})

    def titles(self) -> list[tuple[str, str, str]]:
        """Return the titles in the state: the key of each session, the directory that it was
        started in, the title."""
        return [
            (key, str(cursor.get("start", "")), str(cursor["title"][1]))
            for key, cursor in self._cursors_by_key()
            if cursor.get("title", (0, ""))[1]
        ]

    def _cursors_by_key(self) -> list[tuple[str, Cursor]]:
        """Return the cursors of all sessions, also from an update that may not have arrived."""
        return [
            pair
            for own in self.cursors.values()
            for cursors in (own, own.get(LAST, {}).get("cursors", {}))
            for pair in cursors.items()
            if isinstance(pair[1], dict) and is_whole(pair[1])
        ]


class StateFile(KnownState):
    """State under an exclusive lock until `close`. A file that could not be read is renamed to
    `<name>.corrupt`."""

    def __init__(self, path: str) -> None:
        """Raises LockedError after LOCK_WAIT_SECONDS, OSError if the file is not accessible."""
        self._lock = lock(path + ".lock", LOCK_WAIT_SECONDS)
        try:
            super().__init__(path)
            if self.was_corrupt:
                move_away(path)
        except BaseException:
            self.close()
            raise

    def prepare(self, standstill: list[object] | None = None) -> None:
        """Write the state beside the file. A full disk fails here, before anything is printed."""
        content = {STANDSTILL: standstill, **self.cursors} if standstill else self.cursors
        write_private(self.path + ".tmp", encode(content).encode())

    def commit(self) -> None:
        """Put what `prepare` wrote in place, in one step. Not synced: a lost cursor only repeats
        itself."""
        replace(self.path + ".tmp", self.path)

    def is_first_to_answer(self, prompt: str) -> bool:
        """Check that no other copy of our hook has answered this prompt, and note in the lock file
        that this one does. Raises OSError."""
        note = prompt.encode()[:_NOTE_BYTES]
        if not note or not hasattr(os, "pread"):
            return True
        if os.pread(self._lock, _NOTE_BYTES, 0) == note:
            return False
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, note, 0)
        return True

    def forget(self, keys: set[str]) -> None:
        """Delete the state if it is that of a session with one of these keys, else their titles in
        it, in whatever runtime they are. Raises OSError."""
        if self.path.rpartition("/")[2].removesuffix(".json") in keys:
            if is_file(self.path):
                os.unlink(self.path)
        else:
            self.forget_titles(keys)

    def forget_titles(self, keys: set[str]) -> None:
        """Delete the titles of sessions with these keys from the state, whatever their runtime.
        Raises OSError."""
        kept = encode(self.cursors)
        for key, cursor in self._cursors_by_key():
            if keys & {key, key.rpartition(":")[2]}:
                drop_titles(cursor)
        # which a killed process has left
        if encode(self.cursors) != kept or is_file(self.path + ".tmp"):
            self.prepare()
            self.commit()

    def close(self) -> None:
        """Release the lock; the kernel does so for a process that dies."""
        os.close(self._lock)

    def __enter__(self) -> StateFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def drop_titles(cursor: Cursor) -> None:
    """Delete the titles of the session of a cursor, and have them looked for again if a rule may
    name one."""
    for name in ("title", "own_title", "titled"):
        cursor.pop(name, None)


def forget_memories(path: str, key: str) -> None:
    """Delete the note of injected memories: a compaction drops them. Raises LockedError,
    OSError."""
    if MEMORIES in KnownState(path).of(key):
        with StateFile(path) as file:
            file.of(key).pop(MEMORIES, None)
            file.prepare()
            file.commit()


def are_cursors(value: object) -> bool:
    """Check if a value holds cursors by the key of their session, each with an offset."""
    if not isinstance(value, dict):
        return False
    for key, one in value.items():
        if key == MEMORIES:
            is_cursor = isinstance(one, list)
        else:  # the collisions are checked when they are read
            is_cursor = key == COLLISIONS or (
                isinstance(one, dict) and isinstance(one.get("offset"), int)
            )
        if not is_cursor:
            return False
    return True


def is_whole(cursor: Cursor) -> bool:
    """Check every part of a cursor; one with a wrong part counts as none."""
    for name in ("offset", "size", "inode", "mtime", "head", "tail"):
        number = cursor.get(name, 0)
        if type(number) is not int or number < 0:
            return False
    for name in ("first", "start", "directory", "git", "branch"):
        if not isinstance(cursor.get(name, ""), str):
            return False
    title, ids, unread = (
        cursor.get("title", [0, ""]),
        cursor.get("ids", []),
        cursor.get("unread", []),
    )
    if not (isinstance(title, list) and isinstance(ids, list) and isinstance(unread, list)):
        return False
    is_dated = _is_time(cursor.get("seen", 0)) and _is_time(cursor.get("began") or 0)
    has_kinds = [*map(type, title)] == [int, str] and {*map(type, ids)} <= {int}
    return is_dated and has_kinds and all(map(_is_part, unread))


def _is_part(part: object) -> bool:
    """Check a part of a file that was left unread: from which byte to which, and the time since
    which it counts."""
    if not isinstance(part, list) or len(part) != 3 or not _is_time(part[2]):
        return False
    return type(part[0]) is type(part[1]) is int and 0 <= part[0] <= part[1]


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= LAST_SECOND  # type: ignore[operator]
