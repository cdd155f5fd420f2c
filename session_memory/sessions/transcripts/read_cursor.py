"""Read cursor: where reading a transcript resumes, and the known facts about its session.

An offset alone misses rewrites. So a cursor also has the inode, and checksums of the file's first
bytes and of the bytes before the offset: if one differs, the file is a new generation. The line of
a title that is rewritten in place does not count."""

from __future__ import annotations

from ...common.system.files import checksum, read_at, stamp_of
from ...common.system.json import is_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import stat_result

    from ...common.system.files import Stamp

    # the first byte, the end, and the time from which its entries count
    UnreadPart = tuple[int, int, float]
    Title = tuple[int, str]  # with its rank

_CHECKED_BYTES = 1024  # of a file's beginning, and before a read cursor
_OF_THE_POSITION = ("offset", "size", "inode", "mtime", "head")
_OF_THE_SESSION = ("first", "start", "compacted", "kin", "own_title", "titled")
_INTEGER, _STRING = {int}, {str}
_FLAG = {bool, type(None)}


class ReadCursor:
    """A read cursor in a transcript.

    `offset` is after the last line that was read. `size`, `inode` and `mtime` are the file's stamp
    at that time (0 for a time that was too recent). `head` and `tail` are checksums; without a
    `tail` nothing is known about the file.

    For the session it has the newest time `seen`, the checksums of its last `ids`, the `unread`
    parts, how much its `sub_agents` wrote, its best `title`, and up to where titles were searched
    (`titled`). From the transcript's beginning come the `first` entry's id, the directory of the
    `start`, whether it is `compacted`, the sessions it may be a copy of (`kin`), and the title
    without hidden entries (`own_title`). Unknown parts are None."""

    __slots__ = (
        *_OF_THE_POSITION,
        "tail",
        "seen",
        "ids",
        "unread",
        "sub_agents",
        "title",
        *_OF_THE_SESSION,
    )
    VERSION = 1  # 0.4.2 wrote no version; the form is the same

    def __init__(self, offset: int = 0, inode: int = 0, head: int = 0, tail: int | None = None):
        self.offset = offset
        self.size = self.mtime = 0
        self.inode = inode
        self.head = head
        self.tail = tail
        self.seen = 0.0
        self.ids: list[int] = []
        self.unread: list[UnreadPart] = []
        self.sub_agents = 0
        self.title: Title | None = None
        self.titled: int | None = None
        self.first: str | None = None
        self.start: str | None = None
        self.compacted = False
        self.kin: list[str] | None = None
        self.own_title: str | None = None

    @classmethod
    def load(cls, kept: object) -> ReadCursor | None:
        """Return the cursor from a dump; None if a part is wrong or a later version wrote it."""
        if not isinstance(kept, dict) or kept.get("version", 1) != cls.VERSION:
            return None
        get, cursor = kept.get, cls.__new__(cls)
        cursor.title, cursor.unread = None, []
        cursor.offset, cursor.size = get("offset", 0), get("size", 0)
        cursor.inode, cursor.mtime = get("inode", 0), get("mtime", 0)
        cursor.head, cursor.tail = get("head", 0), get("tail")
        cursor.titled, sub_agents = get("titled"), get("sub_agents")
        cursor.sub_agents = 0 if sub_agents is None else sub_agents
        cursor.first, cursor.start = get("first"), get("start")
        cursor.own_title, cursor.kin = get("own_title"), get("kin")
        cursor.seen, cursor.ids = get("seen", 0.0), get("ids", [])
        compacted = get("compacted")
        cursor.compacted = compacted is True
        if type(compacted) not in _FLAG or not cursor._has_numbers() or not cursor._has_texts():
            return None
        return cursor if cursor._load_lists(get("title"), get("unread", [])) else None

    def _has_numbers(self) -> bool:
        """Check that each number of a dump is one."""
        for number in (self.offset, self.size, self.inode, self.mtime, self.head, self.sub_agents):
            if type(number) is not int or number < 0:
                return False
        for limit in (self.tail, self.titled):
            if limit is not None and (type(limit) is not int or limit < 0):
                return False
        return is_time(self.seen)

    def _has_texts(self) -> bool:
        """Check that each text of a dump is one."""
        for text in (self.first, self.start, self.own_title):
            if text is not None and type(text) is not str:
                return False
        return self.kin is None or (type(self.kin) is list and {*map(type, self.kin)} <= _STRING)

    def _load_lists(self, title: object, unread: object) -> bool:
        """Load the title and the unread parts, and check the ids; False if one is wrong."""
        if type(self.ids) is not list or not {*map(type, self.ids)} <= _INTEGER:
            return False
        if type(unread) is not list:
            return False
        if title is not None:
            if type(title) is not list or len(title) != 2:
                return False
            rank, text = title
            if type(rank) is not int or type(text) is not str:
                return False
            self.title = rank, text
        if unread:
            if not all(map(_is_part, unread)):
                return False
            self.unread = [(low, high, since) for low, high, since in unread]
        return True

    def dump(self) -> dict[str, object]:
        """Return the stored form, which 0.4.2 reads too. Unknown parts are left out."""
        kept: dict[str, object] = {
            "version": self.VERSION,
            "offset": self.offset,
            "size": self.size,
            "inode": self.inode,
            "mtime": self.mtime,
            "head": self.head,
        }
        if self.tail is not None:
            kept["tail"] = self.tail
        values = self.first, self.start, self.compacted, self.kin, self.own_title, self.titled
        for name, value in zip(_OF_THE_SESSION, values):
            if value is not None and value is not False:
                kept[name] = value
        if self.title is not None:
            kept["title"] = [*self.title]
        if self.unread:
            kept["unread"] = [[*part] for part in self.unread]
        if self.sub_agents:
            kept["sub_agents"] = self.sub_agents
        if self.seen or self.ids:
            kept["seen"], kept["ids"] = self.seen, self.ids
        return kept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadCursor) and self.dump() == other.dump()

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> ReadCursor:
        """Return a separate cursor with the same parts."""
        other = ReadCursor()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    @classmethod
    def behind(
        cls, descriptor: int, status: stat_result, offset: int, now_nanoseconds: int
    ) -> ReadCursor:
        """Return the cursor for a file that was read up to `offset`."""
        from .lines import RACY_NANOSECONDS

        cursor = cls(offset)
        cursor.head, cursor.tail = _checksums(descriptor, offset)
        cursor.inode, cursor.size, milliseconds = stamp_of(status)
        is_settled = now_nanoseconds - status.st_mtime_ns > RACY_NANOSECONDS
        cursor.mtime = milliseconds if is_settled else 0
        return cursor

    def resume_offset(self, descriptor: int, status: stat_result) -> int | None:
        """Return the offset at which to continue, always the beginning of a line.

        Return None if the file is not the cursor's."""
        offset = self.offset
        if offset > status.st_size:
            return None
        if self.tail is None:  # an offset of unknown origin: continue at the beginning of its line
            from .lines import last_line_end

            return last_line_end(descriptor, 0, offset, offset)
        is_same_file = self.inode == status.st_ino
        return (
            offset
            if is_same_file and (self.head, self.tail) == _checksums(descriptor, offset)
            else None
        )

    def take_beginning(self, before: ReadCursor) -> None:
        """Copy from an earlier cursor the facts from the transcript's beginning."""
        for name in ("first", "start", "compacted", "kin", "own_title"):
            setattr(self, name, getattr(before, name))

    def take_stamp(self, later: ReadCursor) -> None:
        """Take the stamp of the file from a later cursor."""
        self.size, self.inode, self.mtime = later.size, later.inode, later.mtime

    def drop_titles(self) -> bool:
        """Delete the session's titles, so they are searched for again if a rule may name one.

        Return whether there was anything to delete."""
        has_any = (self.title, self.own_title, self.titled) != (None, None, None)
        self.title = self.own_title = self.titled = None
        return has_any

    def without_titles(self) -> ReadCursor:
        """Return a copy without the titles' words.

        It still has a title; otherwise the head would be read again."""
        other = self.copy()
        other.own_title = None
        other.title = (0, "-") if self.title is not None else None
        return other


class ReadCursors:
    """Read cursors by the keys of their sessions.

    Each is loaded on demand: loading all of 1,000 would take .2 x of a bare start. A broken one
    counts as missing."""

    __slots__ = ("_kept", "_loaded")

    def __init__(self, loaded: dict[str, ReadCursor] | None = None) -> None:
        self._kept: dict[str, object] = {}
        self._loaded: dict[str, ReadCursor] = loaded if loaded is not None else {}

    @classmethod
    def load(cls, kept: dict[str, object]) -> ReadCursors:
        """Return the cursors from a dump."""
        cursors = cls()
        cursors._kept = kept
        return cursors

    def dump(self) -> dict[str, object]:
        """Return the kept form. Unread cursors stay as they were."""
        return {**self._kept, **{key: cursor.dump() for key, cursor in self._loaded.items()}}

    def get(self, key: str) -> ReadCursor | None:
        """Return the cursor of a session; None if there is none."""
        if key in self._kept:
            cursor = ReadCursor.load(self._kept.pop(key))
            if cursor is not None:
                self._loaded[key] = cursor
        return self._loaded.get(key)

    def is_unchanged(self, key: str, stamp: Stamp, sub_agents: int) -> bool:
        """Check if a session's transcript with this stamp was read to its end.

        Its sub-agents must not have written more since then."""
        kept = self._kept.get(key)
        if isinstance(kept, dict):
            get = kept.get
            if sub_agents and sub_agents != get("sub_agents"):
                return False
            return "unread" not in kept and (get("inode"), get("size"), get("mtime")) == stamp
        cursor = self._loaded.get(key)
        if cursor is None or cursor.unread or (sub_agents and sub_agents != cursor.sub_agents):
            return False
        return (cursor.inode, cursor.size, cursor.mtime) == stamp

    def set(self, key: str, cursor: ReadCursor) -> None:
        """Replace the cursor of a session."""
        self._kept.pop(key, None)
        self._loaded[key] = cursor

    def items(self) -> Iterator[tuple[str, ReadCursor]]:
        """Yield the cursors with the keys of their sessions."""
        for key in [*self._kept]:
            self.get(key)
        yield from list(self._loaded.items())

    def merged(self, later: ReadCursors) -> ReadCursors:
        """Return these cursors, with the `later` ones replacing those of the same sessions."""
        merged = ReadCursors({**self._loaded, **later._loaded})
        merged._kept = {**self._kept, **later._kept}
        for key in later._loaded:
            merged._kept.pop(key, None)
        for key in later._kept:
            merged._loaded.pop(key, None)
        return merged

    def limited(self, keys: Iterable[str]) -> ReadCursors:
        """Return the cursors of the sessions with these keys."""
        limited = ReadCursors()
        for key in keys:
            if key in self._kept:
                limited._kept[key] = self._kept[key]
            elif key in self._loaded:
                limited._loaded[key] = self._loaded[key]
        return limited

    def __iter__(self) -> Iterator[str]:
        yield from [*self._kept, *self._loaded]

    def __bool__(self) -> bool:
        return bool(self._kept or self._loaded)


def _is_part(part: object) -> bool:
    """Check a part of a file that was left unread."""
    if not isinstance(part, list) or len(part) != 3 or not is_time(part[2]):
        return False
    return type(part[0]) is type(part[1]) is int and 0 <= part[0] <= part[1]


def _checksums(descriptor: int, offset: int) -> tuple[int, int]:
    """Return the checksums of a file's first bytes and of the bytes before `offset`.

    Each covers at most _CHECKED_BYTES."""
    from .lines import settled_from

    length = min(_CHECKED_BYTES, offset)
    head = read_at(descriptor, 0, length)
    start = settled_from(descriptor, head)
    tail = read_at(descriptor, max(start, offset - length), offset)
    return checksum(head[start:]), checksum(tail)
