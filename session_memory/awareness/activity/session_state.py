"""Session state: everything stored about a session between its prompts.

The file is JSON, `consuming session -> other session -> read cursor`, written in one step under a
lock:

    {"main": {"discord": {"offset": 12345, "size": 12345, "inode": 77, "mtime": ..., "head": ...,
    "tail": ..., ...}}}

Only `offset` is required. The session's own key has an OwnState. The keys of the last delivery, the
collisions (sealed with a checksum) and the injected memories are names that no session has. The
first key may be STANDSTILL (see `changes`). 0.4.2 reads this form too, and wrote it without
versions.
"""

from __future__ import annotations

from ...common.system.files import is_file, lock, move_away, os, read_whole, replace, write_private
from ...common.system.json import decode, encode, is_time
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from .changes import STANDSTILL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCK_WAIT_SECONDS = 0.2
LAST, COLLISIONS, MEMORIES = " last", " collisions", " memories"  # no session has a name like these
_NOTE_BYTES = 64
_MISSING = object()
_DELIVERY_KINDS = {
    "offset": int,
    "text": int,
    "misses": int,
    "file": str,
    "prompt": str,
    "process": str,
}
_KEPT = {  # the parts of an OwnState by their names in the file
    "directory": "directory",
    "git": "git_dir",
    "stamp": "stamp",
    "branch": "branch",
    "at": "updated",
    "asked": "asked",
    "left_out": "left_out",
    "pending": "pending",
    "open": "has_open_calls",
    "conflicts": "inbox",
    "conflicts_told": "notes_told",
    "named": "files_named",
    "no_room": "no_room",
    "searched_for": "searched_for",
}


class OwnState:
    """The state of the session itself at its last prompt.

    `cursor` is its read cursor in its own transcript, None if that was not read. `directory` is its
    start directory, None if collisions were not searched. HEAD of its worktree is stored as the git
    directory, a `stamp` and the `branch` or commit. `has_open_calls` means that results of calls
    were missing. `updated` is the time of the last collisions, `asked` of the last prompt, in
    seconds since 1970.

    `left_out` are sessions that were last active too long ago. `pending` are sessions that could
    not be compared, with how often that was late. `inbox` is the stamp of the inbox whose notes
    were reported, `notes_told` has their keys. `files_named` are checksums of the files that an
    update named because they concerned the prompt, with their sessions. Sessions whose news had
    `no_room` have the size of their transcript, or a negative number for its version. Of these,
    `searched` has cursors at the end of transcripts without a read cursor that do not concern the
    work; `searched_for` says which work: see `WorkSearch`."""

    __slots__ = ("cursor", "searched", *_KEPT.values())
    VERSION = 1

    def __init__(self) -> None:
        self.cursor: ReadCursor | None = None
        self.directory: str | None = None
        self.git_dir = self.branch = ""
        self.stamp: list[int] = []
        self.updated = self.asked = 0.0
        self.left_out: list[str] = []
        self.pending: dict[str, int] = {}
        self.has_open_calls = False
        self.inbox: list[int] = []
        self.notes_told: list[str] = []
        self.files_named: list[int] = []
        self.no_room: dict[str, int] = {}
        self.searched = ReadCursors()
        self.searched_for: list[int] = []

    @classmethod
    def load(cls, kept: object) -> OwnState | None:
        """Return the state from a dump.

        Return None if a part of it is wrong, or if a later version wrote it."""
        cursor = ReadCursor.load(kept)
        if not isinstance(kept, dict) or cursor is None:
            return None
        state, get = cls(), kept.get
        state.cursor = None if cursor.tail is None else cursor
        state.directory, state.git_dir, state.branch = (
            get("directory"),
            get("git", ""),
            get("branch", ""),
        )
        if {type(state.directory or ""), type(state.git_dir), type(state.branch)} != {str}:
            return None
        state.updated, state.asked = [
            kept[name] if is_time(get(name)) else 0.0 for name in ("at", "asked")
        ]
        state.stamp, state.inbox = _numbers(get("stamp")), _numbers(get("conflicts"))
        state.files_named = _numbers(get("named"))
        left_out, conflicts_told, pending = get("left_out"), get("conflicts_told"), get("pending")
        state.left_out = [*map(str, left_out)] if isinstance(left_out, list) else []
        state.notes_told = [*map(str, conflicts_told)] if isinstance(conflicts_told, list) else []
        state.pending, state.no_room = _counts(pending), _counts(get("no_room"))
        searched, state.searched_for = get("searched"), _numbers(get("searched_for"))
        state.searched = ReadCursors.load(searched if isinstance(searched, dict) else {})
        state.has_open_calls = bool(get("open"))
        return state

    def dump(self) -> dict[str, object]:
        """Return the stored form, which 0.4.2 reads too. Parts without a value are left out."""
        parts = {name: getattr(self, attribute) for name, attribute in _KEPT.items()}
        kept = {name: value for name, value in parts.items() if value or value == ""}
        if searched := self.searched.dump():
            kept["searched"] = searched
        position = self.cursor.dump() if self.cursor else {"offset": 0, "version": self.VERSION}
        return {**position, **kept}

    def copy(self) -> OwnState:
        """Return a separate state with the same parts."""
        other = OwnState()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        return other


class InjectedMemories:
    """The keys of the injected memories, in their order.

    They are stored as a list without a version, because 0.4.2 reads only lists; the state around it
    has a version."""

    __slots__ = ("keys",)
    VERSION = 1

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.keys = [*keys]

    @classmethod
    def load(cls, kept: object) -> InjectedMemories:
        """Return the memories from a dump; none if it is not a list."""
        return cls([str(key) for key in kept] if isinstance(kept, list) else ())

    def dump(self) -> list[str]:
        """Return the kept form."""
        return self.keys


class LastDelivery:
    """The last delivery.

    At that time, the transcript was called `file` and ended at `offset`; `text` is the checksum of
    the update, `at` its time in seconds since 1970. It answered the prompt with the id `prompt` of
    the runtime's `process`, both '' if unknown. `misses` is the number of successive earlier
    prompts whose transcripts showed nothing from hooks.

    `after` has the parts of the state that moved with the update. They count once it has arrived;
    None if they count already. `acknowledged` tells if it has arrived, None if unknown."""

    __slots__ = (*_DELIVERY_KINDS, "acknowledged", "after", "at")
    VERSION = 1  # 0.4.2 wrote no version; the form is the same

    def __init__(self, offset: int, file: str, text: int, at: float, misses: int) -> None:
        self.offset = offset
        self.file = file
        self.text = text
        self.at = at
        self.misses = misses
        self.prompt = self.process = ""
        self.after: SessionState | None = None
        self.acknowledged: bool | None = None

    @classmethod
    def load(cls, kept: object, key: str) -> LastDelivery | None:
        """Return the delivery from a dump, for the state of the session with this key.

        Return None if a part is wrong, or if a later version wrote it."""
        if not isinstance(kept, dict) or kept.get("version", 1) != cls.VERSION:
            return None
        after = kept.get("cursors")
        if after is not None and not _are_cursors(after):
            return None
        parts = {"misses": 0, "prompt": "", "process": "", **kept}
        if any([type(parts.get(name)) is not kind for name, kind in _DELIVERY_KINDS.items()]):
            return None
        is_placed = parts["offset"] >= 0 and "/" not in parts["file"]
        if not is_placed or type(parts.get("at")) is not float or not is_time(parts["at"]):
            return None
        last = cls(parts["offset"], parts["file"], parts["text"], parts["at"], parts["misses"])
        last.prompt, last.process, last.after = parts["prompt"], parts["process"], None
        if after is not None:
            last.after = SessionState.load(after, key)
        if "acknowledged" in kept:
            last.acknowledged = kept["acknowledged"] is True
        return last

    def dump(self, key: str) -> dict[str, object]:
        """Return the stored form, for the state of the session with this key; 0.4.2 reads it
        too."""
        kept: dict[str, object] = {"version": self.VERSION, "at": self.at}
        kept.update({name: getattr(self, name) for name in _DELIVERY_KINDS})
        if self.after is not None:
            kept["cursors"] = self.after.dump(key)
        if self.acknowledged is not None:
            kept["acknowledged"] = self.acknowledged
        return kept

    def resolved(self, misses: int, *, is_acknowledged: bool) -> LastDelivery:
        """Return the same delivery once its outcome is known."""
        last = LastDelivery(self.offset, self.file, self.text, self.at, misses)
        last.acknowledged = is_acknowledged
        return last


class SessionState:
    """The state of a session.

    It has the read `cursors` in the other sessions' transcripts, its `own` state, its `collisions`
    in CollisionState's stored form, the `memories` injected since the last compaction, and the
    `last` delivery. Each is None if unknown. The changes of an update are a state with only the
    changed parts."""

    __slots__ = ("collisions", "cursors", "last", "memories", "own")
    VERSION = 1

    def __init__(
        self, cursors: ReadCursors | None = None, own_state: OwnState | None = None
    ) -> None:
        self.cursors = cursors if cursors is not None else ReadCursors()
        self.own = own_state
        self.collisions: str | None = None
        self.memories: InjectedMemories | None = None
        self.last: LastDelivery | None = None

    @classmethod
    def load(cls, kept: dict[str, object], key: str) -> SessionState:
        """Return the state from a dump for the session with this key.

        A broken part counts as missing."""
        others = dict(kept)
        own_state, collisions = others.pop(key, None), others.pop(COLLISIONS, _MISSING)
        memories, last = others.pop(MEMORIES, None), others.pop(LAST, None)
        state = cls(ReadCursors.load(others), OwnState.load(own_state))
        state.collisions = None if collisions is _MISSING else str(collisions)
        if memories is not None:
            state.memories = InjectedMemories.load(memories)
        state.last = LastDelivery.load(last, key)
        return state

    def dump(self, key: str) -> dict[str, object]:
        """Return the form stored in the file, for the session with this key."""
        kept = self.cursors.dump()
        if self.own is not None:
            kept[key] = self.own.dump()
        if self.collisions is not None:
            kept[COLLISIONS] = self.collisions
        if self.memories is not None:
            kept[MEMORIES] = self.memories.dump()
        if self.last is not None:
            kept[LAST] = self.last.dump(key)
        return kept

    def limited(self, keys: Iterable[str]) -> SessionState:
        """Return the state with only the cursors of sessions with these keys."""
        state = self.copy()
        state.cursors = self.cursors.limited(keys)
        return state

    def copy(self) -> SessionState:
        """Return a separate state with the same parts."""
        return self.merged(SessionState())

    def merged(self, changes: SessionState) -> SessionState:
        """Return the state after these changes."""
        state = SessionState(self.cursors.merged(changes.cursors), changes.own or self.own)
        state.collisions = self.collisions if changes.collisions is None else changes.collisions
        state.memories, state.last = changes.memories or self.memories, changes.last or self.last
        return state

    def as_reported(self) -> SessionState:
        """Return the state as if everything that was reported had arrived."""
        return self.merged(self.last.after) if self.last and self.last.after else self


class KnownState:
    """The state in the file at `path`, read without the lock.

    No lock is needed, because the file is replaced atomically. `was_corrupt` means that the file
    could not be read. `written` is when it was written, in seconds since 1970."""

    def __init__(self, path: str) -> None:
        """Raises OSError if the file is not accessible."""
        self.path = path
        self.was_corrupt = False
        self.standstill: object = None
        self.written = 0.0
        self._kept: dict[str, dict[str, object]] = {}
        self._states: dict[str, SessionState] = {}
        try:
            kept = decode(read_whole(path).decode())
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            kept = None
        if isinstance(kept, dict):
            self.standstill = kept.pop(STANDSTILL, None)
        is_state = isinstance(kept, dict) and all(map(_are_cursors, kept.values()))
        if is_state and not any([_is_of_0_2(key, kept[key]) for key in kept]):
            self._kept = kept
        else:
            self.written = os.stat(path, follow_symlinks=False).st_mtime
            self.was_corrupt = True

    @staticmethod
    def delete_if_corrupt(path: str) -> None:
        """Delete a state file that cannot be read.

        Raises LockedError; NotAFileError for a directory or anything else that is not a file."""
        from ...common.system.files import Closing, NotAFileError

        with Closing(lock(path + ".lock", LOCK_WAIT_SECONDS)):
            if KnownState(path).was_corrupt:
                if not is_file(path):
                    raise NotAFileError(f"not a regular file: {path}")
                os.unlink(path)

    def is_new(self, key: str) -> bool:
        """Check that nothing was delivered to a consuming session yet."""
        return self._kept.get(key, {MEMORIES: []}).keys() == {MEMORIES}

    def of(self, key: str) -> SessionState:
        """Return the state of a consuming session."""
        if key not in self._states:
            if key not in self._kept:
                return SessionState()
            self._states[key] = SessionState.load(self._kept[key], key)
        return self._states[key]

    def titles(self) -> list[tuple[str, str, str]]:
        """Return the titles in the state, each with its session's key and start directory.

        A tuple has the key, the directory and the title."""
        return [
            (key, cursor.start or "", cursor.title[1])
            for key, cursor in self._every_cursor()
            if cursor.title and cursor.title[1]
        ]

    def _every_cursor(self) -> Iterator[tuple[str, ReadCursor]]:
        """Yield the cursors of all sessions, also from an update that may not have arrived."""
        for consumer in self._kept:
            state = self.of(consumer)
            for part in (state, state.last.after if state.last else None):
                if part is not None:
                    yield from part.cursors.items()


class StateFile(KnownState):
    """State under an exclusive lock until `close`.

    A file that could not be read is renamed to `<name>.corrupt`."""

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
        content: dict[str, object] = {STANDSTILL: standstill} if standstill else {}
        content.update(self._kept)
        content.update({key: state.dump(key) for key, state in self._states.items()})
        write_private(self.path + ".tmp", encode(content).encode())

    def put(self, key: str, state: SessionState) -> None:
        """Replace the state of a consuming session, for `prepare`."""
        self._states[key] = state

    def commit(self) -> None:
        """Put the files from `prepare` in place, atomically.

        They are not synced, because a lost cursor only repeats an update."""
        replace(self.path + ".tmp", self.path)

    def is_first_to_answer(self, prompt: str) -> bool:
        """Check that no other copy of our hook has answered this prompt, and claim it.

        The note for this is in the lock file. Raises OSError."""
        note = prompt.encode()[:_NOTE_BYTES]
        if not note or not hasattr(os, "pread"):
            return True
        if os.pread(self._lock, _NOTE_BYTES, 0) == note:
            return False
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, note, 0)
        return True

    def forget(self, keys: set[str]) -> None:
        """Delete the state of a session with one of these keys, or their titles in other state.

        The sessions may be of any runtime. Raises OSError."""
        if self.path.rpartition("/")[2].removesuffix(".json") in keys:
            if is_file(self.path):
                os.unlink(self.path)
        else:
            self.forget_titles(keys)

    def forget_titles(self, keys: set[str]) -> None:
        """Delete the titles of sessions with these keys, in any runtime, from the state.

        Raises OSError."""
        has_dropped = False
        for key, cursor in self._every_cursor():
            if keys & {key, key.rpartition(":")[2]}:
                has_dropped = cursor.drop_titles() or has_dropped
        # which a killed process has left
        if has_dropped or is_file(self.path + ".tmp"):
            self.prepare()
            self.commit()

    def close(self) -> None:
        """Release the lock; the kernel does so for a process that dies."""
        os.close(self._lock)

    def __enter__(self) -> StateFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def forget_memories(path: str, key: str) -> None:
    """Delete the note of injected memories, because a compaction removes them from the context.

    Raises LockedError, OSError."""
    if KnownState(path).of(key).memories is not None:
        with StateFile(path) as file:
            file.of(key).memories = None
            file.prepare()
            file.commit()


def _are_cursors(value: object) -> bool:
    """Check if a value contains cursors by the key of their session, each with an offset."""
    if not isinstance(value, dict):
        return False
    for key, kept in value.items():
        if key == MEMORIES:
            is_cursor = isinstance(kept, list)
        else:  # the collisions are checked when they are read
            is_cursor = key == COLLISIONS or (
                isinstance(kept, dict) and isinstance(kept.get("offset"), int)
            )
        if not is_cursor:
            return False
    return True


def _is_of_0_2(key: str, cursors: dict[str, object]) -> bool:
    """Check if 0.2.0 to 0.2.3 wrote the state of a session.

    They kept the collisions in a file of their own, and only the number of sessions left out."""
    parts = cursors.get(key)
    if not isinstance(parts, dict):
        return False
    return isinstance(parts.get("left_out"), int) or ("tail" in parts and COLLISIONS not in cursors)


def _counts(value: object) -> dict[str, int]:
    """Return the whole numbers in a dump by their names."""
    if not isinstance(value, dict):
        return {}
    return {str(name): number for name, number in value.items() if type(number) is int}


def _numbers(value: object) -> list[int]:
    """Return a value that is a list of numbers; [] for any other value."""
    return value if isinstance(value, list) and {*map(type, value)} <= {int} else []
