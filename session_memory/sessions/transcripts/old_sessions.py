"""Lists of a folder's recent transcripts, so prompts need not check thousands of old ones.

A list has the names of recent transcripts, then the names and stamps of old ones, the last written
first. A file beside it has additions: new names, names of old sessions that are at work again, and
stamps of the folder. A prompt trusts a list if the folder has one of its stamps, so no transcript
was added. Writing to a transcript does not change that stamp, so the hooks of an old session note
its name, and each prompt checks a slice of the old transcripts. A lost list is made again.
"""

from __future__ import annotations

from ...common.errors import LockedError
from ...common.system.files import (
    READ_FLAGS,
    Closing,
    Opened,
    checksum,
    is_regular,
    lock,
    names_in,
    open_private,
    os,
    path_stamp,
    read_at,
    read_whole,
    stamp_of,
    status_at,
    write_atomically,
)
from ...common.system.json import decode, encode
from .lines import settled_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ..runtimes.base import Runtime
    from .entries import Session
    from .projects import FolderLists

    # the time of the last change in milliseconds, the size, the inode, the place of the name
    OldTranscript = tuple[int, int, int, int]
    DatedName = tuple[int, int, int, str]  # with the name

RECENT_SECONDS = 36 * 3600.0
REBUILT_SECONDS = 6 * 3600.0
MOST_ADDED = 500  # names, before the list is made again
SLICE = 400  # old transcripts that a prompt checks
_NOTE_WAIT_SECONDS = 0.1
_ADDITIONS, _LOCK = ".added", ".lock"
_SUFFIX = ".jsonl"
_TURN = b"%08d\n"  # begins a list: the next slice to check
_TURN_BYTES = 9
_MOST_TURNS = 10**8
_SLICE_BYTES = SLICE * 256  # of the names in a slice; no file system has longer ones
_RECORD = b"%015d %015d %020d %010d\n"  # the last number is the place of the name
_RECORD_BYTES = 64
_HEAD_BYTES = 64 * 1024


class FolderList:
    """The list of the transcripts in `folder`, in the file at `path`.

    `names` are those that may have changed, each with the time when a hook noted it, or 0. The
    newest of the old ones was written at `newest`. Times are in seconds since 1970."""

    VERSION = 1

    def __init__(self, folder: str, path: str, now: float) -> None:
        """Load the list. Raises OSError, ValueError."""
        self.folder = folder
        self.names: dict[str, float] = {}
        self._path = path
        self._now = now
        self._stamps: list[list[int]] = []
        with Opened(path) as descriptor:
            self._load(descriptor)
        self._added = 0
        for line in _additions(path).split("\n")[:-1]:
            self._take_addition(line)

    def _load(self, descriptor: int) -> None:
        head = read_at(descriptor, 0, _HEAD_BYTES)
        end = head.index(b"\n", _TURN_BYTES)
        kept = decode(head[_TURN_BYTES:end].decode())
        if not isinstance(kept, dict) or kept.get("version") != self.VERSION:
            raise ValueError("a list of another version")
        self._turn = int(head[:_TURN_BYTES]) if head[:_TURN_BYTES].strip().isdigit() else 0
        try:
            self.newest, self._at = float(kept["newest"]), float(kept["at"])
            self._names_at = end + 1 + int(kept["recent"])
            self._records_at = self._names_at + int(kept["old names"])
            self._old = int(kept["old"])
            self._stamps.append(kept["stamp"])
            seal = kept["checksum"]
        except (KeyError, TypeError):
            raise ValueError("a list without a part") from None
        status = os.fstat(descriptor)
        self._inode = status.st_ino
        recent = head[end + 1 : self._names_at]
        recent += read_at(descriptor, len(head), self._names_at)
        size = self._records_at + self._old * _RECORD_BYTES
        if status.st_size != size or checksum(recent) != seal:
            raise ValueError("a list that is not as it was written")
        for line in _names(recent):
            noted, _, name = line.partition(" ")
            self.names[name] = float(noted)

    def _take_addition(self, line: str) -> None:
        kind, _, content = line.partition(" ")
        if kind == "=":
            self._stamps.append([int(number) for number in content.split(" ")])
        elif kind:
            self.names[content] = float(kind)
            self._added += 1

    @property
    def is_outdated(self) -> bool:
        """Check if the list is to be made again, because it is too old or has too many additions."""
        return self._added >= MOST_ADDED or abs(self._now - self._at) >= REBUILT_SECONDS

    def check(self) -> None:
        """Add new transcripts to the names, and old ones of the next slice that were written to.

        Raises OSError, ValueError."""
        names, stamp = [], []
        if path_stamp(self.folder) not in self._stamps:
            stamp = settled_stamp(self.folder)
            known = {*self.names, *self._old_names()}
            names = [name for name in _transcripts(self.folder) if name not in known]
        names += [name for name in self._changed_in_slice() if name not in self.names]
        self.names.update(dict.fromkeys(names, 0.0))
        if names or stamp:
            _add(self._path, [(0.0, name) for name in names], stamp, 0.0)

    def _changed_in_slice(self) -> list[str]:
        """Return the changed transcripts of the slice whose turn it is, and end its turn."""
        if not self._old:
            return []
        first = self._turn * SLICE % (-(-self._old // SLICE) * SLICE)
        with self._opened(os.O_RDWR) as descriptor:
            os.write(descriptor, _TURN % ((self._turn + 1) % _MOST_TURNS))
            records = self._records(descriptor, first, first + SLICE)
            start = self._names_at + records[0][3]
            names = _names(read_at(descriptor, start, min(self._records_at, start + _SLICE_BYTES)))
        changed = []
        for (milliseconds, size, inode, _), name in zip(records, names):
            status = status_at(f"{self.folder}/{name}", follow_symlinks=False)
            if status is not None and stamp_of(status) != (inode, size, milliseconds):
                changed.append(name)
        return changed

    def _opened(self, flags: int = 0) -> Closing:
        """Open the list that was loaded. Raises OSError, ValueError."""
        descriptor = os.open(self._path, READ_FLAGS | flags)
        if os.fstat(descriptor).st_ino != self._inode:
            os.close(descriptor)
            raise ValueError("another process has made the list again")
        return Closing(descriptor)

    def _old_names(self) -> list[str]:
        with self._opened() as descriptor:
            return _names(read_at(descriptor, self._names_at, self._records_at))

    def _records(self, descriptor: int, first: int, end: int) -> list[OldTranscript]:
        end = min(end, self._old)
        at, end_at = [self._records_at + number * _RECORD_BYTES for number in (first, end)]
        records = []
        for line in read_at(descriptor, at, end_at).split(b"\n")[:-1]:
            milliseconds, size, inode, place = line.split(b" ")
            records.append((int(milliseconds), int(size), int(inode), int(place)))
        if len(records) != end - first:
            raise ValueError("a list that is not as it was written")
        return records

    def old_since(self, oldest: float) -> list[str]:
        """Return the old transcripts that were written since `oldest`, in seconds since 1970."""
        if not self._old or self.newest < oldest:
            return []
        with self._opened() as descriptor:
            records = self._records(descriptor, 0, self._old)
        number = len([record for record in records if record[0] + 1 > oldest * 1000])
        return self._old_names()[:number]

    def old_with(self, keys: Collection[str]) -> list[str]:
        """Return the old transcripts whose names end with one of these keys."""
        if not keys or not self._old:
            return []
        names = "\n".join(["", *self._old_names(), ""])
        matching = []
        for key in keys:
            at = names.find(f"{key}{_SUFFIX}\n")
            while at >= 0:
                end = names.index("\n", at)
                matching.append(names[names.rindex("\n", 0, at + 1) + 1 : end])
                at = names.find(f"{key}{_SUFFIX}\n", end)
        return matching


class OldSessions:
    """The old sessions in a folder with a list, which belong to the `worktree` of a project."""

    def __init__(
        self, listed: FolderList, runtime: Runtime, worktree: str, *, is_own: bool
    ) -> None:
        self._listed = listed
        self._runtime = runtime
        self._worktree = worktree
        self._prefix = "" if is_own else f"{runtime.name}:"

    @property
    def folder(self) -> str:
        """The folder with the sessions' transcripts."""
        return self._listed.folder

    def recent(self) -> list[Session]:
        """Return the other sessions of the folder, which may have changed."""
        return self._sessions(self._listed.names)

    def relevant(self, keys: Iterable[str], oldest: float) -> list[Session]:
        """Return the old sessions with these keys, or written since `oldest`.

        That is in seconds since 1970. If the list cannot be read again, return all sessions."""
        wanted = {key.removeprefix(self._prefix) for key in keys if key.startswith(self._prefix)}
        try:
            names = dict.fromkeys(self._listed.old_since(oldest))
            names.update(dict.fromkeys(self._listed.old_with(wanted)))
        except (OSError, ValueError):
            names = dict.fromkeys(names_in(self.folder))
        return self._sessions(names)

    def _sessions(self, names: Iterable[str]) -> list[Session]:
        sessions = self._runtime.sessions_called(names, self.folder, False, self._worktree)
        for session in sessions if self._prefix else ():
            session.take_runtime(self._runtime)
        return sessions


class ListFile:
    """The file with the list of a folder, at its place in `lists`."""

    def __init__(self, lists: FolderLists, folder: str) -> None:
        self._folder = folder
        self._path = lists.file_of(folder)
        self._now = lists.now
        self._recent_seconds = max(RECENT_SECONDS, lists.first_sight_seconds + RECENT_SECONDS / 3)

    def load(self) -> FolderList:
        """Return the list. Raises OSError, ValueError."""
        return FolderList(self._folder, self._path, self._now)

    def old_sessions(self, runtime: Runtime, worktree: str, *, is_own: bool) -> OldSessions | None:
        """Return the folder's old sessions, after the list was checked; None without a list."""
        try:
            listed = self.load()
            if listed.is_outdated and self.make():
                listed = self.load()
            listed.check()
        except (OSError, ValueError):  # it is made again after all sessions were checked
            return None
        return OldSessions(listed, runtime, worktree, is_own=is_own)

    def make(self) -> bool:
        """Make the list; return False if another process is doing so.

        Names that hooks noted stay. Raises OSError; ValueError if a name has a line feed."""
        try:
            descriptor = lock(self._path + _LOCK, 0.0)
        except LockedError:
            return False
        with Closing(descriptor):
            since = self._now - self._recent_seconds
            stamp = settled_stamp(self._folder)
            recent, old = _by_age(self._folder, since)
            added = _additions(self._path)
            recent.update({name: at for name, at in self._noted().items() if at >= since})
            old = [each for each in old if each[3] not in recent]
            write_atomically(self._path, _content(recent, old, stamp, self._now))
            if added and _additions(self._path) == added:  # no hook has added a name since
                os.unlink(self._path + _ADDITIONS)
        return True

    def note_active(self, name: str) -> None:
        """Note that the hook of a session with this transcript runs.

        So others do not take it for an old session. Raises OSError."""
        status = status_at(f"{self._folder}/{name}", follow_symlinks=False)
        if status is None:  # a new transcript changes the stamp of its folder
            return
        try:
            noted = self.load().names.get(name)
        except ValueError:
            return
        written = status.st_mtime if noted is not None else 0.0
        if max(written, noted or 0.0) >= self._now - RECENT_SECONDS / 3:
            return
        if not _add(self._path, [(self._now, name)], [], _NOTE_WAIT_SECONDS):
            # a list that is made meanwhile keeps this addition
            _append(self._path, [(self._now, name)], [])

    def _noted(self) -> dict[str, float]:
        """Return the names that hooks noted, with the times; none without a list."""
        try:
            names = self.load().names
        except (OSError, ValueError):
            return {}
        return {name: noted for name, noted in names.items() if noted}


def _by_age(folder: str, since: float) -> tuple[dict[str, float], list[DatedName]]:
    """Return a folder's transcripts written since a time, and the others, the latest first.

    Raises OSError."""
    recent: dict[str, float] = {}
    old: list[DatedName] = []
    for name in _transcripts(folder):
        status = status_at(f"{folder}/{name}", follow_symlinks=False)
        is_old = status is not None and status.st_mtime < since
        if status is not None and is_old and is_regular(status) and name.isascii():
            inode, size, milliseconds = stamp_of(status)
            old.append((milliseconds, size, inode, name))
        else:
            recent[name] = 0.0
    return recent, sorted(old, reverse=True)


def _names(content: bytes) -> list[str]:
    """Return the whole lines of `content`."""
    return _text(content).split("\n")[:-1]


def _transcripts(folder: str) -> Iterator[str]:
    """Yield the names of the transcripts in a folder. Raises OSError."""
    for name in os.listdir(folder):
        if name.endswith(_SUFFIX):
            yield name


def _content(recent: dict[str, float], old: list[DatedName], stamp: list[int], now: float) -> bytes:
    """Return the content of a list. Raises ValueError if a name has a line feed."""
    if any(["\n" in name for name in [*recent, *[each[3] for each in old]]]):
        raise ValueError("a line feed in the name of a transcript")
    lines = _bytes("".join([f"{noted} {name}\n" for name, noted in recent.items()]))
    names, records, place = [], [], 0
    for milliseconds, size, inode, name in old:
        records.append(_RECORD % (milliseconds, size, inode, place))
        names.append(name)
        place += len(name) + 1  # ASCII only
    names.append("")
    old_names = "\n".join(names).encode()
    head = {
        "version": FolderList.VERSION,
        "at": now,
        "stamp": stamp,
        "newest": old[0][0] / 1000 + 0.001 if old else 0.0,
        "recent": len(lines),
        "checksum": checksum(lines),
        "old names": len(old_names),
        "old": len(old),
    }
    return b"".join([_TURN % 0, encode(head).encode(), b"\n", lines, old_names, *records])


def _additions(path: str) -> str:
    try:
        return _text(read_whole(path + _ADDITIONS))
    except FileNotFoundError:
        return ""


def _add(path: str, names: list[tuple[float, str]], stamp: list[int], wait_seconds: float) -> bool:
    """Add names, each with the time when it was noted, and a stamp of the folder to a list.

    Return False if another process makes the list meanwhile. Raises OSError."""
    try:
        descriptor = lock(path + _LOCK, wait_seconds)
    except LockedError:
        return False
    with Closing(descriptor):
        _append(path, names, stamp)
    return True


def _append(path: str, names: list[tuple[float, str]], stamp: list[int]) -> None:
    lines = [f"{noted} {name}" for noted, name in names if "\n" not in name]
    if stamp:
        lines.append("= " + " ".join([str(number) for number in stamp]))
    # an addition cut off by a full disk must not become a part of the next one
    with Closing(open_private(path + _ADDITIONS, os.O_WRONLY | os.O_APPEND)) as descriptor:
        os.write(descriptor, _bytes("\n" + "\n".join(lines) + "\n"))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
