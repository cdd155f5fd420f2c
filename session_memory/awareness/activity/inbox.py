"""Inbox of a home: notes from upkeep for prompts, such as conflicts and handoffs.

One file has the notes by their kind; NOTES in `extension_points` names the class of each kind. New
notes are lines of an update, so they count as told once the update is acknowledged. Without an
inbox, a prompt only takes one `stat` to see that.

The file has the name and form in which 0.4.2 stores conflicts, because both versions read and write
it. 0.4.2 drops other kinds of notes, which the next upkeep adds again.
"""

from __future__ import annotations

import time

from ...common.system.files import Closing, is_file, lock, os, read_whole, write_atomically
from ...common.system.git import find_worktree
from ...common.system.json import decode, encode
from ...sessions.settings.compiled import stamp
from .call_log import reported_with_calls
from .changes import OwnSession, inbox_stamp
from .viewpoint import Viewpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from typing import Any

    from typing_extensions import Self

    from ...common.system.git import Worktree
    from ...sessions.settings.homes import Home
    from .session_state import OwnState

    Stamps = list[tuple[str, object]]  # of the files with rules, by their paths

MOST_LINES = 2
LOCK_WAIT_SECONDS = 5.0  # of upkeep; another writer takes some milliseconds
_VERSION, _RULES, _JUDGED = "version", "rules", "judged"


def _rows() -> dict[str, str]:
    from ...extension_points import NOTES

    return NOTES


PREBUILT = _rows()  # so a bundle has the rows without the module


class Note:
    """A note for some sessions; a subclass words one kind, whose name in the inbox is KIND.

    `key` identifies it. IS_JUDGED means that upkeep has judged it by rules; after these change, it
    waits for the next upkeep. AT_START means that it is told only at the beginning of a session's
    first update, and only the first note of its kind."""

    __slots__ = ("key",)
    key: str
    KIND = ""
    IS_JUDGED = False
    AT_START = False

    @classmethod
    def keep(cls, home: Home, notes: Sequence[Note], rules: Iterable[str] | None = None) -> bool:
        """Replace the notes of this kind, and return whether the inbox has changed.

        `rules` are the files by whose rules they were judged. Raises LockedError, OSError."""
        if not notes and not is_file(home.inbox_file):
            return False
        with Closing(lock(home.inbox_lock, LOCK_WAIT_SECONDS)):
            try:
                inbox = Inbox.read(home)
            except (ValueError, TypeError):  # damaged: upkeep finds all of it again
                inbox = Inbox()
            before = encode(inbox.dump())
            inbox.replace(cls.KIND, notes)
            if rules is not None:
                inbox.rules = [(path, stamp(path)) for path in rules]
            if encode(inbox.dump()) == before:
                return False
            if rules is not None:
                inbox.judged = time.time_ns()
            write_atomically(home.inbox_file, encode(inbox.dump()).encode())
            return True

    @classmethod
    def load(cls, kept: Any) -> Self:
        """Return the note from a dump. Raises TypeError for any other object."""
        names = ("key", *cls.__slots__)
        return cls(**{name: kept[name] for name in names if name in kept})

    def dump(self) -> dict[str, object]:
        """Return the note as an object to store."""
        return {name: getattr(self, name) for name in ("key", *self.__slots__)}

    def is_for(self, reader: OwnSession, worktree: Worktree | None, now: float) -> bool:
        """Check that the note has not expired and is for a session started in the `worktree`."""
        raise NotImplementedError

    def line(self, now: float, inside: str) -> str:
        """Return the line for an agent that works `inside` a directory of its worktree, or ''."""
        raise NotImplementedError


class Inbox:
    """The notes of a home, in the form of their class's dump, by their kinds.

    `rules` are stamps of the files with the rules by which upkeep judged some of them. The time of
    this is `judged`, in nanoseconds since 1970."""

    __slots__ = ("dumps", "judged", "rules")
    VERSION = 1  # 0.4.2 wrote none

    def __init__(self) -> None:
        self.dumps: dict[str, list[object]] = {}
        self.judged = 0
        self.rules: Stamps = []

    @classmethod
    def read(cls, home: Home) -> Inbox:
        """Return the inbox of a home. Raises OSError, ValueError."""
        try:
            content = read_whole(home.inbox_file)
        except FileNotFoundError:
            return cls()
        inbox = cls.load(decode(content.decode()))
        # a file of 0.4.2 was written when it was judged
        inbox.judged = inbox.judged or os.stat(home.inbox_file).st_mtime_ns
        return inbox

    @classmethod
    def load(cls, kept: object) -> Inbox:
        """Return the inbox from a dump. Raises ValueError if the dump has another form."""
        if not isinstance(kept, dict) or kept.pop(_VERSION, cls.VERSION) != cls.VERSION:
            raise ValueError("the inbox has another form")
        inbox = cls()
        rules, judged = kept.pop(_RULES, None), kept.pop(_JUDGED, 0)
        if isinstance(rules, list):
            inbox.rules = [(path, known) for path, known in rules]
        inbox.judged = judged if isinstance(judged, int) else 0
        inbox.dumps = {kind: dumps for kind, dumps in kept.items() if isinstance(dumps, list)}
        return inbox

    def dump(self) -> dict[str, object]:
        """Return the stored form, which 0.4.2 reads too."""
        head: dict[str, object] = {_VERSION: self.VERSION, _RULES: self.rules}
        return {**head, _JUDGED: self.judged, "conflicts": [], **self.dumps}

    def replace(self, kind: str, notes: Sequence[Note]) -> None:
        """Replace the notes of a kind."""
        self.dumps.pop(kind, None)
        if notes:
            self.dumps[kind] = [note.dump() for note in notes]

    @property
    def is_valid(self) -> bool:
        """Check that the rules are still those by which upkeep judged."""
        return all([stamp(path) == known for path, known in self.rules])

    def waiting(self, reader: OwnSession, now: float, *, at_start: bool) -> list[Note] | None:
        """Return the notes that may be told to a session, or None if upkeep must judge some again.

        They are the notes for the start of a session if it is `at_start`, else all others. Raises
        TypeError."""
        worktree = find_worktree(reader.start, reader.user_dir)
        notes: list[Note] = []
        for note_class, dumps in self._kinds():
            if note_class.AT_START is not at_start:
                continue
            if note_class.IS_JUDGED and not self.is_valid:
                return None
            loaded = [note_class.load(dumped) for dumped in dumps]
            notes += [note for note in loaded if note.is_for(reader, worktree, now)]
        return notes

    def _kinds(self) -> Iterator[tuple[type[Note], list[object]]]:
        """Yield the class of each kind with notes, unless its feature was deleted."""
        for kind, place in PREBUILT.items():
            if self.dumps.get(kind):
                from ...common.extensions import load_present

                for note_class in load_present([place]):
                    yield note_class, self.dumps[kind]


def start_lines(reader: OwnSession, now: float, room: int) -> list[str]:
    """Return lines for the first update of a session, at most one of each kind.

    They take at most `room` characters, with a line feed each. Raises OSError, ValueError,
    TypeError."""
    if reader.home is None:
        return []
    lines, inside = [], Viewpoint(reader.start, reader.user_dir).inside
    kinds: set[type[Note]] = set()
    for note in Inbox.read(reader.home).waiting(reader, now, at_start=True) or ():
        line = note.line(now, inside)
        if type(note) not in kinds and len(line) < room:
            kinds.add(type(note))
            lines.append(line)
            room -= len(line) + 1
    return lines


def new_lines(reader: OwnSession, state: OwnState, now: float, room: int) -> list[str]:
    """Return lines about new notes, and record them in the reader's own `state`.

    The lines take at most `room` characters, with a line feed each. Keys of deleted notes are
    dropped from the state. Raises OSError, ValueError, TypeError."""
    stamped = inbox_stamp(reader)  # before it is read: a later change is seen next time
    notes = Inbox.read(reader.home).waiting(reader, now, at_start=False) if reader.home else []
    if notes is None:
        return []
    told_keys = {*state.notes_told, *reported_with_calls(reader.cursor_file, now)}
    inside = Viewpoint(reader.start, reader.user_dir).inside
    lines, state.notes_told = lines_about(notes, told_keys, now, room, inside)
    if len(state.notes_told) == len(notes):
        state.inbox = stamped
    return lines


def lines_about(
    notes: Iterable[Note], told_keys: Container[str], now: float, room: int, inside: str = ""
) -> tuple[list[str], list[str]]:
    """Return lines about notes not in `told_keys`, and the keys of all notes told so far.

    The lines take at most `room` characters, with a line feed each. The agent works `inside` a
    directory of its worktree."""
    lines: list[str] = []
    keys: list[str] = []
    for note in notes:
        if note.key not in told_keys:
            line = note.line(now, inside)
            if len(lines) == MOST_LINES or len(line) >= room:
                continue
            room -= len(line) + 1
            lines.append(line)
        keys.append(note.key)
    return lines, keys
