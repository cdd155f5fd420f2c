"""Mirrors: transcripts that this program writes for a runtime with another form of sessions.

The readers of transcripts expect files of lines that only grow. If a runtime changes what it has
written (rows of a database, rewritten files), a mirror is such a file for one session. Final
records are appended once; if the runtime withdraws one, a line says so. Each addition ends in a
mark, a line that says up to where the runtime's data was read. Lines after the last mark were being
written when a process was killed: they are removed and read again.

No mirror contains a secret. Of an excluded session it has only ids and times, by which a fork's
copies are recognised."""

# A mirror may also be a copy of a compressed transcript. It has no marks: the state beside the
# mirrors lists it (`copied`), or why it could not be read (`unread`), by paths relative to their
# directory.

from __future__ import annotations

from ...common.errors import LockedError
from ...common.system import files
from ...common.system.json import (
    decode,
    encode,
    encode_compactly,
    objects_in,
    sealed,
    unsealed,
)
from .lines import id_checksum, last_line_end, windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ..runtimes.records import Records
    from ..settings.forgotten import ForgottenSessions
    from ..settings.homes import Home

    Stamps = dict[str, list[int]]
    Mark = dict[str, Any]
    Record = dict[str, Any]
    HiddenBy = list[list[str]]  # the directories and the names of an excluded session; or empty

EXCLUDED = "[excluded]"  # replaces the texts of an excluded session
_IDS = ("id", "Id", "ID", "Hash")  # endings of keys whose values are compared, so they never change
# Characters of a text whose key, such as `password`, may show it to be a secret
_LONGEST_NAMED = 200
_OF_ROW = ("msg_", "prt_", "ses_")  # how OpenCode's ids begin
# Further keys whose texts reveal nothing of the conversation, and titles, because a rule may name
# one.
_NOT_SAID = frozenset(
    (
        "type",
        "role",
        "kind",
        "status",
        "time",
        "timestamp",
        "startTime",
        "finish",
        "model",
        "tool",
        "name",
        "mime",
        "cwd",
        "directory",
        "$rewindTo",
        "source",
        "thread_source",
        "originator",
        "cli_version",
        "server",
        "title",
        "summary",
    )
)
_MARK = b'{"type": "mirrored", "mark": '
# in a folder, because replacing it would change the time of the directory that lists the mirrors
_STATE_FILE = ".state/mirrored"
_LOCK_FILE = ".lock"
_BLOCK_BYTES = 1024 * 1024
_MARK_BYTES = 4096  # most marks are shorter than this
_LONGEST_MARK_BYTES = 64 * 1024  # of an excluded mirror
_MOST_HIDDEN_BY = 4096  # characters in a mark or in an archive's last line
LOCK_SECONDS = 10.0
MOST_STATE_BYTES = 16 * 1024 * 1024
PROMPT_LOCK_SECONDS = 0.3  # a prompt waits so long once for each runtime
COMMAND_LOCK_SECONDS = 2.0
_DEEPEST_VALUE = 100
_DEEPEST = 4  # below the directory of the mirrors, as Codex has its rollouts


def update_mirrors(
    root: str, update: Callable[[], None], *errors: type[Exception], wait_seconds: float = 0.0
) -> None:
    """Call `update`, which updates the mirrors below `root`, unless another process is doing so.

    OSError and `errors` are not raised: the work is left for the next time."""
    left_for_later: tuple[type[Exception], ...] = (LockedError, OSError, *errors)
    try:
        files.make_private_dir(root)
        if MirrorLook.now:
            update()
            return
        with files.Closing(files.lock(_lock_path(root), wait_seconds)):
            update()
    except left_for_later:
        return


class MirrorLook:
    """A look for the new ends of the mirrors below `root`, which `update` updates."""

    now: MirrorLook | None = None
    can_wait = True  # until another process has held the lock for PROMPT_LOCK_SECONDS

    def __init__(self, root: str, update: Callable[[], None]) -> None:
        self.root = root
        self.update = update
        self.ends: list[_UnwrittenEnd] = []

    def run(self) -> None:
        """Call `update`, but write to no mirror of a session that exists.

        Their new ends are in UNFINISHED instead, so each is written when it is first read. So is
        the state beside the mirrors, which is written after all of them. Mirrors of new sessions
        and of sub-agents, and those that rules concern, are written at once."""
        MirrorLook.now, MirrorLook.can_wait = self, True
        try:
            self.update()
        finally:
            MirrorLook.now = None

    def has_session(self, path: str) -> bool:
        """Check if a mirror is one of a session, not of its sub-agent."""
        return path[len(self.root) + 1 :].count("/") == 1

    def lock(self) -> files.Closing:
        """Return the lock for writing the mirrors, for a `with` block.

        Raises LockedError, OSError."""
        seconds = PROMPT_LOCK_SECONDS if MirrorLook.can_wait else 0.0
        try:
            return files.Closing(files.lock(_lock_path(self.root), seconds))
        except LockedError:
            MirrorLook.can_wait = False
            raise


class _Unwritten:
    """Something that `look` found for the file at `path`, and that is not written yet."""

    content = b""

    def __init__(self, look: MirrorLook, path: str) -> None:
        self.is_finished = False
        self.is_written = False
        self._look = look
        self._path = path
        files.UNFINISHED[path] = self

    def finish(self) -> None:
        """Write it, unless that was tried before. If it fails, the next update does it."""
        if self.is_finished:
            return
        self.is_finished = True
        now, MirrorLook.now = MirrorLook.now, None
        try:
            with self._look.lock():
                self.is_written = self._write()
            if not self.is_written:
                self._look.update()
        except Exception:  # an odd session fails alone, for now
            return
        finally:
            MirrorLook.now = now

    @property
    def version(self) -> int:
        """A number that identifies the finished file; 0 if it has none."""
        return 0

    def finished_status(self, status: files.os.stat_result) -> files.os.stat_result:
        """Return the status of the finished file."""
        return status

    def _write(self) -> bool:
        """Write it; return False if another process has written something else.

        Raises OSError."""
        raise NotImplementedError


class _UnwrittenEnd(_Unwritten):
    """The end of a mirror after the mark `before`: `records` and the mark `after` them.

    Redacting an end takes most of the time of adding it, and a prompt reads few of them."""

    def __init__(
        self,
        look: MirrorLook,
        mirror: Mirror,
        records: list[Record | bytes],
        marks: tuple[Mark, Mark],
        modified: int,
    ) -> None:
        self._records = records
        self._kind = type(mirror)
        self._before, self._after = marks
        self._modified = modified
        self.content = _with_mark(mirror.encoded(records), self._after)
        look.ends.append(self)
        super().__init__(look, mirror.path)  # last: a deadline may end this at any point

    @property
    def version(self) -> int:
        return _version(self._after)

    def finished_status(self, status: files.os.stat_result) -> files.os.stat_result:
        """Return the status of the finished file, with its size before redaction."""
        seconds, nanoseconds = self._modified / 1000, self._modified * 1_000_000
        known = [*status[:6], status.st_size + len(self.content), 0, self._modified // 1000, 0]
        return files.os.stat_result(known, {"st_mtime": seconds, "st_mtime_ns": nanoseconds})

    def _write(self) -> bool:
        with self._kind(self._path) as mirror:
            if mirror.mark == self._before:
                mirror.append(self._records, self._after, self._modified)
            return _version(mirror.mark) == self.version


class _UnwrittenState(_Unwritten):
    """The content of a file of state, which replaces the content `before`.

    It is only written after all ends."""

    def __init__(self, look: MirrorLook, path: str, before: bytes, after: bytes) -> None:
        self._before, self._after = before, after
        super().__init__(look, path)

    def finish(self) -> None:
        if all([end.is_finished for end in self._look.ends]):
            super().finish()

    def _write(self) -> bool:
        is_same = files.read_end(self._path, len(self._before) + 1) == self._before
        if is_same and all([end.is_written for end in self._look.ends]):
            files.write_atomically(self._path, self._after)
        return True


class Exclusion:
    """The rules of a home: which sessions' texts a mirror must not contain.

    `stamps` change with the rules."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.stamps = [files.path_stamp(path) for path in (home.config_file, *home.rules_files)]

    def hides(self, directory: str, *names: str) -> bool:
        """Check if a session from `directory` with any of `names` is excluded."""
        from ..settings.homes import environment, settings_above

        if not self._home.settings().has_rules and not settings_above(directory, self._home):
            return False
        from ..settings.privacy import Privacy

        return (
            Privacy(environment(), self._home)
            .rule(directory, *[name for name in names if name])
            .ignore
        )

    def hidden_by(
        self, directories: Iterable[str], ids: Iterable[str], titles: Iterable[str] = ()
    ) -> HiddenBy:
        """Return the directories and names of a session if a rule excludes it, for its mark.

        They are empty if no rule does. Those that rules name come first, as there is room for few."""
        names = [*filter(None, (*ids, *titles))]
        places = [*filter(None, directories)] or [""]
        hiding = [each for each in places if self.hides(each, *names)]
        if not hiding:
            return []
        from ...common.text.sanitize import for_people

        ranked = sorted(names, key=lambda name: not self.hides(hiding[0], name))
        parts = [*hiding, *places], ranked
        kept = [[*dict.fromkeys(map(for_people, part))] for part in parts]
        while len(encode(kept)) > _MOST_HIDDEN_BY:
            max(kept, key=lambda part: len(encode(part))).pop()
        return kept

    def hides_deleted(self, mark: Mark) -> bool:
        """Check if a rule still excludes a session that the runtime has deleted, by its mark.

        Then its mirror stays, because the store may have texts from before the rule. It does not
        if the store keeps nothing of deleted sessions."""
        hidden_by = mark.get("is_excluded")
        if not isinstance(hidden_by, list) or self._home.settings().keep == "none":
            return False
        directories, names = hidden_by
        return any([self.hides(each, *names) for each in directories])

    def forgotten(self, directory: str, *session_ids: str) -> float:
        """Return the time up to which one of these sessions was forgotten, in seconds since 1970.

        Return 0.0 if none was. A rebuilt mirror has no message from before that time."""
        from ..settings.homes import environment, settings_above

        if not self._home.has_forgotten() and not settings_above(directory, self._home):
            return 0.0
        from ..settings.privacy import Privacy

        privacy = Privacy(environment(), self._home)
        return max([(privacy.forgotten_until(id, directory) or 0) / 1000 for id in session_ids])

    def repeats(self, meaning: Records, directory: str, session_id: str) -> Repeats | None:
        """Return the object that recognises a session's repeats of forgotten messages.

        `meaning` decodes the session's records. Return None if nothing was forgotten."""
        from ..settings.homes import environment, settings_above

        if not self._home.has_forgotten() and not settings_above(directory, self._home):
            return None
        from ..settings.privacy import Privacy

        return Repeats(meaning, Privacy(environment(), self._home).forgotten(directory), session_id)


class Repeats:
    """Recognises records, in their order, that repeat forgotten messages.

    These are the entries, the results and other records after them, and titles of a session that
    begins with one (`has_begun`)."""

    def __init__(self, meaning: Records, forgotten: ForgottenSessions, session_id: str) -> None:
        self._meaning = meaning
        self._forgotten = forgotten
        self._session_id = session_id
        self._is_dropped = False
        self.has_begun: bool | None = None

    def drops(self, record: Record) -> bool:
        """Check if a record must not be in a mirror."""
        from ..runtimes.records import CALLS, MESSAGES, SUB_AGENTS, Title
        from .entries import Entry

        events = self._meaning.events(record, 0, MESSAGES | CALLS | SUB_AGENTS)
        entries = [event for event in events if isinstance(event, Entry)]
        if entries:
            self._is_dropped = self._forgotten.holds(entries[0], self._session_id)
            self.has_begun = self._is_dropped if self.has_begun is None else self.has_begun
        elif any([isinstance(event, Title) for event in events]):
            return bool(self.has_begun)
        return self._is_dropped


def copies_of(records: list[Record], is_excluded: bool) -> list[object]:
    """Return records as a mirror has them, without secrets.

    If the session `is_excluded`, its texts are removed too."""
    # not loaded by a prompt that has nothing to add
    from ...common.text.secrets.redaction import redact, spots

    def copied(record: Record) -> object:
        # All texts of a record are checked at once, because few contain a possible secret.
        may_change = is_excluded or spots("\n".join(_texts(record)))
        return _changed(record, "", is_excluded, redact) if may_change else record

    return [copied(record) for record in records]


def _texts(record: object) -> Iterator[str]:
    """Yield the texts that `_changed` redacts in a record."""
    parts: list[tuple[str, object]] = [("", record)]
    while parts:
        key, value = parts.pop()
        if isinstance(value, dict):
            parts += value.items()
        elif isinstance(value, list):
            parts += [(key, each) for each in value]
        elif isinstance(value, str) and not _is_kept(value, key):
            yield value
            if _may_be_named(value, key):
                yield f"{key}={value}"
            if value.startswith("{"):
                try:
                    parts.append((key, decode(value)))
                except ValueError:
                    continue


def _may_be_named(value: str, key: str) -> bool:
    """Check if a text's key alone may show a secret.

    A path's key looks like one, but is not."""
    return len(value) < _LONGEST_NAMED and not key.endswith(("path", "Path"))


def _is_kept(value: str, key: str) -> bool:
    """Check if a text is never changed: an id, or nothing."""
    return not value or key.endswith(_IDS) or value.startswith(_OF_ROW)


def _changed(
    value: object, key: str, is_excluded: bool, redact: Callable[[str], str], depth: int = 0
) -> object:
    """Return a part of a record under `key` as a mirror has it.

    Return None for parts nested deeper than runtimes write."""
    if isinstance(value, (dict, list)) and depth > _DEEPEST_VALUE:
        return None
    if isinstance(value, dict):
        return {
            name: _changed(inner, name, is_excluded, redact, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_changed(item, key, is_excluded, redact, depth + 1) for item in value]
    if not isinstance(value, str) or _is_kept(value, key):
        return value
    if is_excluded and key not in _NOT_SAID:
        return EXCLUDED
    redacted = redact(value)
    if value.startswith("{"):  # the arguments of a call, as JSON in a string
        try:
            redacted = redact(encode(_changed(decode(value), key, is_excluded, redact, depth + 1)))
            return redacted if decode(redacted) != decode(value) else value
        except ValueError:
            return redact(value)
    named = redact(f"{key}={value}") if redacted == value and _may_be_named(value, key) else ""
    return named[len(key) + 1 :] if named.startswith(f"{key}=") else redacted


class Mirror:
    """The mirror at `path`, opened for appending; `mark` is its last one, empty if there is none.

    If `hidden_by` is not empty, its session is excluded, and the mark says by what. If it was not
    before, all texts are removed; if it no longer is, the mirror is rebuilt. Use it in a `with`
    block, in one process at a time (see `_lock_path`). Raises OSError."""

    encode = staticmethod(encode)

    def __init__(
        self, path: str, hidden_by: HiddenBy | None = None, repeats: Repeats | None = None
    ) -> None:
        """Leave out all records that `repeats` recognises as forgotten."""
        self.path = path
        self._hidden_by = hidden_by or []
        self._repeats = repeats
        self.mark: Mark = {}
        self._descriptor = -1
        self._end = 0
        self._look: MirrorLook | None = None  # to which the end is left
        self._lock: files.Closing | None = None

    def __enter__(self) -> Mirror:
        size, self._end, self.mark = _state_of(self.path)
        if MirrorLook.now:
            if self._may_be_left(MirrorLook.now):
                self._look = MirrorLook.now
                return self
            self._lock = MirrorLook.now.lock()
            size, self._end, self.mark = _state_of(self.path)
        hidden_by = self.mark.get("is_excluded")
        if self._end and hidden_by and not self._hidden_by:
            self._end, self.mark = 0, {}
        elif self._end and self._hidden_by and hidden_by != self._hidden_by:
            self._blank()
        elif self._end < size:
            self._open()
            files.os.ftruncate(self._descriptor, self._end)
        return self

    def _may_be_left(self, look: MirrorLook) -> bool:
        """Check if the end of this mirror may stay unwritten (see `MirrorLook.run`)."""
        is_plain = not self._hidden_by and self._repeats is None
        is_known = bool(self.mark) and not self.mark.get("is_excluded")
        return is_plain and is_known and look.has_session(self.path)

    def _blank(self) -> None:
        """Remove all that was said, up to the last mark, and say in that by what it is hidden."""
        lines = files.read_whole(self.path)[: self._end].splitlines()
        self.mark["is_excluded"] = self._hidden_by
        said = [
            self.encode(record).encode()
            for line in lines
            if not is_mark(line)
            for record in copies_of(list(objects_in(line)), True)
        ]
        content = b"\n".join([*said, _marked(self.mark), b""])
        modified = files.os.stat(self.path).st_mtime_ns
        files.write_atomically(self.path, content)
        files.os.utime(self.path, ns=(modified, modified))
        self._end = len(content)

    def append(self, records: Iterable[Record | bytes], mark: Mark, modified: int) -> int:
        """Add a line for each of `records`, and `mark`; return the number of bytes.

        A line in bytes, which cannot be read, is added as it is. `modified` is when the session was
        last written, in milliseconds since 1970; the file gets the same time. Raises OSError, and
        errors of an iterator over `records`: then nothing was added."""
        if self._look:
            marks = self.mark, mark
            self.mark = mark
            end = _UnwrittenEnd(self._look, self, list(records), marks, modified)
            return len(end.content)
        if self._hidden_by:
            mark["is_excluded"] = self._hidden_by
        if self._repeats is not None:
            records = self._without_forgotten([*records], self._repeats, mark)
        self._open()
        if not self._end:
            files.os.ftruncate(self._descriptor, 0)
        files.os.lseek(self._descriptor, self._end, 0)
        written = 0
        try:
            for block in _blocks(self._lines(records), mark):
                written += self._write(block)
        except BaseException:
            files.os.ftruncate(self._descriptor, self._end)
            raise
        self._end += written
        files.os.utime(self.path, ns=(modified * 1_000_000, modified * 1_000_000))
        self.mark = mark
        return written

    def _write(self, block: bytes) -> int:
        written = 0
        while written < len(block):
            written += files.os.write(self._descriptor, block[written:])
        return written

    def _lines(self, records: Iterable[Record | bytes]) -> Iterator[bytes]:
        """Yield records as lines of this mirror, one after the other: there may be a gigabyte."""
        for record in records:
            copies = (
                [record]
                if isinstance(record, bytes)
                else copies_of([record], bool(self._hidden_by))
            )
            yield from self.encoded(copies)

    def _without_forgotten(
        self, records: list[Record | bytes], repeats: Repeats, mark: Mark
    ) -> list[Record | bytes]:
        """Return the records without repeats of forgotten messages, and clean `mark` likewise."""
        repeats.has_begun = self.mark.get("repeats_forgotten")
        for record in records:  # a title may come before the first entry
            if repeats.has_begun is None and not isinstance(record, bytes):
                repeats.drops(record)
        if repeats.has_begun is not None:
            mark["repeats_forgotten"] = repeats.has_begun
        kept = [
            record for record in records if isinstance(record, bytes) or not repeats.drops(record)
        ]
        if repeats.has_begun:
            mark.update(
                {key: empty for key, empty in (("title", ""), ("titles", [])) if key in mark}
            )
        return kept

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            files.os.close(self._descriptor)
        if self._lock is not None:
            self._lock.__exit__()

    def _open(self) -> None:
        if self._descriptor < 0:
            self._descriptor = files.open_private(self.path, files.os.O_WRONLY)

    def encoded(self, records: Iterable[object]) -> list[bytes]:
        """Return records as lines."""
        return [
            record if isinstance(record, bytes) else self.encode(record).encode()
            for record in records
        ]


class CompactMirror(Mirror):
    """A mirror whose records have no spaces between values, as programs write them.

    So the program's decoder skips lines by their bytes."""

    encode = staticmethod(encode_compactly)


def remove(path: str) -> None:
    """Delete the mirror at `path` and its sub-agents' mirrors, so they are rebuilt.

    The new ones lack forgotten messages. Does nothing for another file. Raises OSError,
    LockedError."""
    if not is_mirror(path):
        return
    root = _root_of(path)
    with files.Closing(files.lock(_lock_path(root), LOCK_SECONDS)):
        for place in (
            root,
            *[f"{root}/{name}" for name in files.names_in(root) if name.startswith(".")],
        ):
            state = read_state(place)
            if state.is_known:
                keep_state(place, state.incomplete())
        folder = path.removesuffix(".jsonl")
        for mirror in (
            *[f"{folder}/{name}" for name in files.names_in(folder) if name.endswith(".jsonl")],
            path,
        ):
            files.os.unlink(mirror)


def is_mirror(path: str) -> bool:
    """Check if a file is a mirror: it has a mark, or its directory's state lists it as a copy."""
    root = _root_of(path)
    if not root or not files.is_file(path):
        return False
    return bool(mark_of(path)) or path[len(root) + 1 :] in read_state(root).copied


def hidden_by(path: str) -> HiddenBy | bool:
    """Return the directories and names by which a rule hides a mirror's texts, empty if none does.

    Only the runtime may know that they are the session's. It is True for a mirror of an earlier
    version. Only the end is read, because other files have no mark."""
    end = files.read_end(path, _LONGEST_MARK_BYTES) if _root_of(path) else b""
    last = end[:-1].rpartition(b"\n")[2]
    mark = _said_by(last) if is_mark(last) else None
    known: HiddenBy | bool = (mark or {}).get("is_excluded", [])
    return known


def gone(root: str) -> list[str]:
    """Return the mirrors below `root` of sessions that the runtime has deleted.

    They are given by relative path."""
    return read_state(root).gone


def remove_gone(root: str, stored: Mapping[str, int]) -> None:
    """Delete the mirrors of deleted sessions that the store has completely.

    `stored` has the number of stored bytes by path below `root`. Sub-agents' mirrors are deleted
    with their session's."""
    for key in gone(root):
        path, session = f"{root}/{key}", f"{root}/{key}".rpartition("/")[0] + ".jsonl"
        try:
            is_done = (
                not files.is_file(session)
                if key.count("/") > 1
                else stored.get(key, -1) >= files.os.stat(path).st_size
            )
            if is_done:
                files.os.unlink(path)
        except OSError:  # it is gone already
            continue


def unread(root: str) -> list[tuple[str, str]]:
    """Return the sessions that could not be copied to mirrors below `root`, and why.

    They are named by relative path."""
    return [(key, why) for key, (_, why) in read_state(root).unread.items()]


def _lock_path(root: str) -> str:
    """Return the file to lock for writing the mirrors below `root`."""
    return f"{root}/{_LOCK_FILE}"


_STATE_PARTS = {
    "watched": list,
    "rules": list,
    "copied": dict,
    "gone": list,
    "unread": dict,
    "read": dict,
    "sessions": str,
    "row": list,
    "going_on": list,
    "is_whole": bool,
}


class MirrorState:
    """The state beside the mirrors below a directory; each runtime has some of the parts.

    `watched` are the sources (files and directories) with their stamps; `rules` are the stamps of
    the rules by which the mirrors were written. Three parts are by paths relative to the directory:
    `copied` has the copied files with their stamps, `gone` the mirrors of sessions that the runtime
    has deleted, and `unread` the sessions that could not be copied, with a stamp and the reason.
    `read` are the files that were read, with their stamps. `sessions` is the directory of the
    copied files. A database was read up to the message in `row`, its number and id. Sessions
    `going_on` are not final. `is_whole` means that nothing is missing."""

    __slots__ = tuple(_STATE_PARTS)
    VERSION = 1  # 0.4.2 wrote none; the form is the same

    def __init__(self) -> None:
        self.copied: Stamps = {}
        self.going_on: list[str] = []
        self.gone: list[str] = []
        self.is_whole = False
        self.read: Stamps = {}
        self.row: list[object] = []
        self.rules: list[list[int]] = []
        self.sessions = ""
        self.unread: dict[str, tuple[list[int], str]] = {}
        self.watched: list[tuple[str, list[int]]] = []

    @classmethod
    def load(cls, kept: object) -> MirrorState:
        """Return the state from a dump; a part of another type counts as empty, and so does the
        state of a later version."""
        state = cls()
        if isinstance(kept, dict) and kept.get("version", cls.VERSION) == cls.VERSION:
            for name, kind in _STATE_PARTS.items():
                part = kept.get(name)
                if type(part) is kind:
                    setattr(state, name, part)
        return state

    def dump(self) -> dict[str, object]:
        """Return the stored form, which 0.4.2 reads too; without empty parts."""
        parts = {name: getattr(self, name) for name in self.__slots__}
        kept = {name: part for name, part in parts.items() if part}
        return {"version": self.VERSION, **kept}

    @property
    def last_message(self) -> tuple[int, str]:
        """The row of the last message that was read, and its id; 0 and '' if unknown."""
        if len(self.row) == 2 and isinstance(self.row[0], int):
            return self.row[0], str(self.row[1])
        return 0, ""

    @property
    def is_known(self) -> bool:
        """Check that a part was stored."""
        return len(self.dump()) > 1

    def incomplete(self) -> MirrorState:
        """Return the state without the parts that show the mirrors to be complete."""
        other = MirrorState()
        other.copied, other.gone, other.going_on = self.copied, self.gone, self.going_on
        other.rules, other.sessions, other.unread = self.rules, self.sessions, self.unread
        return other


def read_state(root: str) -> MirrorState:
    """Return the state beside the mirrors below `root`; empty if there is none."""
    try:
        return MirrorState.load(unsealed(files.read_whole(f"{root}/{_STATE_FILE}")))
    except (OSError, ValueError):
        return MirrorState()


def has_changed(root: str) -> bool:
    """Check if a source of the mirrors below `root` has changed, or none was seen.

    Sources are files and directories."""
    watched = read_state(root).watched
    return not watched or any([files.path_stamp(path) != stamp for path, stamp in watched])


def keep_state(root: str, state: MirrorState) -> None:
    """Store `state` beside the mirrors, unless it is the same.

    The page watches this directory, and each write would make it refresh the mirrors again. Raises
    OSError."""
    path, content = f"{root}/{_STATE_FILE}", sealed(state.dump())
    before = files.read_end(path, max(len(content), MOST_STATE_BYTES) + 1)
    if before == content:
        return
    if MirrorLook.now:
        unwritten = _UnwrittenState(MirrorLook.now, path, before, content)
        if not MirrorLook.now.ends:  # no process is needed for so little
            unwritten.finish()
    else:
        files.write_atomically(path, content)


def is_mark(line: bytes) -> bool:
    """Check if a line of a mirror is a mark."""
    return line.startswith(_MARK)


def _root_of(path: str) -> str:
    """Return the directory of mirrors with the transcript at `path`; '' if it is not a mirror."""
    for _ in range(_DEEPEST):
        path = path.rpartition("/")[0]
        if files.is_file(_lock_path(path)):
            return path
    return ""


def _blocks(lines: Iterable[bytes], mark: Mark) -> Iterator[bytes]:
    """Yield lines, and `mark` after them, in blocks."""
    waiting, size = [], 0
    for line in lines:
        waiting += [line, b"\n"]
        size += len(line)
        if size >= _BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join([*waiting, _marked(mark), b"\n"])


def _with_mark(lines: list[bytes], mark: Mark) -> bytes:
    return b"\n".join([*lines, _marked(mark), b""])


def _version(mark: Mark) -> int:
    """Return a number that identifies a mirror with this last mark."""
    return id_checksum(encode(mark))


def _marked(mark: Mark) -> bytes:
    return _MARK + encode(mark).encode() + b"}"


def mark_of(path: str) -> Mark:
    """Return the last mark of a mirror."""
    return _state_of(path)[2]


def _state_of(path: str) -> tuple[int, int, Mark]:
    """Return the size of a mirror, the offset after its last mark, and the mark. Raises OSError."""
    try:
        with files.Opened(path) as descriptor:
            size = files.os.fstat(descriptor).st_size
            return size, *_last_mark(descriptor, size)
    except FileNotFoundError:
        return 0, 0, {}


def _last_mark(descriptor: int, size: int) -> tuple[int, Mark]:
    """Return the offset after the last mark in a file, and the mark; 0 and {} without a mark."""
    last = files.read_at(descriptor, max(0, size - _MARK_BYTES), size)
    if last.endswith(b"\n") and is_mark(last[:-1].rpartition(b"\n")[2]):  # as it nearly always is
        mark = _said_by(last[:-1].rpartition(b"\n")[2])
        if mark is not None:
            return size, mark
    for lines in windows_backward(descriptor, 0, last_line_end(descriptor, 0, size, size) or 0):
        for offset, line in reversed(lines):
            mark = _said_by(line) if is_mark(line) else None
            if mark is not None:
                return offset + len(line) + 1, mark
    return 0, {}


def _said_by(line: bytes) -> Mark | None:
    """Return the content of a mark; None if it cannot be read."""
    try:
        mark: Mark = decode(line.decode())["mark"]
    except (ValueError, KeyError, TypeError):
        return None
    return mark
