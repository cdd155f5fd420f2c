"""Finds sessions that may have changed a file in hand, by searching for its name as bytes.

A prompt has time to search all sessions with new entries, but to read only a few.
"""

from __future__ import annotations

from ...common.system.files import (
    Closing,
    Opened,
    open_regular,
    os,
    read_at,
    status_at,
    unfinished,
)
from ...common.system.json import objects_in
from ...common.text.paths import ANY
from ...sessions.runtimes.records import CALLS, MESSAGES, SUB_AGENTS
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.lines import id_checksum, last_line_end
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from .actions import EDIT, GIT, NAMED, REMOVE, REWRITERS, actions_of, is_read_only, may_concern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import stat_result

    from ...sessions.runtimes.base import Runtime
    from ...sessions.runtimes.records import Records
    from ...sessions.transcripts.entries import Session
    from ._own_work import OwnWork
    from .changes import Changed, OwnSession

_PART_BYTES = 1024 * 1024
# of a session that is searched from its end to a time
_FIRST_PART_BYTES = 128 * 1024
_LARGEST_PART_BYTES = 512 * 1024
_WANTED = (MESSAGES | CALLS, MESSAGES | CALLS | SUB_AGENTS)
# a command names the files that it removes, but may not name their directory
_COMMANDS = [b"git ", b"mv ", b"rm -"]
_REWRITERS = [mark.encode() for mark in REWRITERS]
_ESCAPED = (b"\\n", b"\\t")  # white space in JSON
_PLAIN = "._-"  # and letters and digits: these are hardly ever escaped
_ESCAPE = b"\\u00"
_LETTERS = [
    _ESCAPE + digits for digits in (b"2d", b"2D", b"2e", b"2E", b"3", b"4", b"5", b"6", b"7")
]


class WorkSearch:
    """A search for sessions that may have changed files of the `work` of the session `reader`.

    It also finds sessions that may have moved HEAD. `cursors` are the reader's. A transcript
    without a cursor is searched back to `oldest`, in seconds since 1970, or from where the last
    search for the same ended. `active` has the keys of sessions with certain activity since they
    were last read, `searched` cursors at the end of transcripts without one that do not concern the
    work. `searched_for` has a checksum of the names searched for, and `oldest` in
    milliseconds."""

    def __init__(
        self, reader: OwnSession, work: OwnWork, cursors: ReadCursors, oldest: float
    ) -> None:
        self._reader = reader
        self._cursors = cursors
        self._oldest = oldest
        state = work.state
        in_hand = state.working_set.actions if state else {}
        self._open = state.open_actions if state else {}
        self._offsets = work.sub_agents
        self._names = {path.rpartition("/")[2] for path in in_hand}
        self._marks = [*{needle(name) for name in self._names}]
        has_edits = any([action.kind == EDIT for actions in in_hand.values() for action in actions])
        self._takes = GIT if has_edits or work.heads else ""
        self._is_idle = not (self._names or work.heads)
        self.active: set[str] = set()
        self.searched = ReadCursors()
        names = "/".join([self._takes, *sorted(self._names)])
        self.searched_for = [id_checksum(names), int(oldest * 1000)]
        self._searched_before = self._still_valid(work.own.searched, work.own.searched_for)

    def concerned(self, changed: Iterable[Changed]) -> tuple[set[str], list[str]]:
        """Return the keys of sessions that may concern the work, and of unsearched sessions."""
        keys: set[str] = set()
        left = {session.key: None for session, _ in changed}

        def look(pair: Changed) -> None:
            if self._may_concern(pair[0]):
                keys.add(pair[0].key)
            del left[pair[0].key]

        self._reader.deadline.attempt_each(changed, look, lambda pair: pair[0].path)
        return keys, list(left)

    def _still_valid(self, searched: ReadCursors, searched_for: list[int]) -> ReadCursors:
        """Return what the last search `searched`, if it was for the same names, as far back."""
        names, oldest = self.searched_for
        is_same = searched_for[:1] == [names] and searched_for[-1] <= oldest
        return searched if is_same else ReadCursors()

    def _may_concern(self, session: Session) -> bool:
        """Check if a session may concern the work. Raises OSError."""
        if self._is_idle:
            return False
        if session.is_remote or session.key in self._open:
            return True
        runtime = self._reader.runtime_of(session)
        with self._opened(session, runtime) as descriptor:
            status = os.fstat(descriptor)
            for part, begin in self._parts(session, descriptor, status, runtime):
                if self._is_about_work(part, session, runtime, begin):
                    return True
            if self._cursors.get(session.key) is None:
                end = last_line_end(descriptor, 0, status.st_size, status.st_size) or 0
                cursor = ReadCursor.behind(descriptor, status, end, 0)  # its time is not needed
                self.searched.set(session.key, cursor)
        beside = [*runtime.sub_agents_beside(session.path), *session.known_sub_agents]
        return any([self._is_sub_agent_concerned(path, runtime) for path in beside])

    def _opened(self, session: Session, runtime: Runtime) -> Closing:
        """Return the open transcript; an unwritten end that is not about the work stays so."""
        end = unfinished(session.path)
        if end is None or self._cursors.get(session.key) is None:
            return Opened(session.path)
        if self._is_about_work(end.content, session, runtime):
            return Opened(session.path)
        return Closing(open_regular(session.path))

    def _is_about_work(
        self, part: bytes, session: Session, runtime: Runtime, begin: int = 0
    ) -> bool:
        """Check if unread lines may be about the work, and note if they have calls."""
        lines = _lines_with_calls(part, runtime.records, begin)
        if lines and runtime.records.CALL_MARK and self._cursors.get(session.key):
            self.active.add(session.key)
        return self._are_about_work(lines, runtime)

    def _parts(
        self, session: Session, descriptor: int, status: stat_result, runtime: Runtime
    ) -> Iterator[tuple[bytes, int]]:
        """Yield the unsearched lines of a transcript in parts, each with where they begin in it.

        Raises OSError."""
        cursor = self._cursors.get(session.key)
        known = cursor or self._searched_before.get(session.key)
        start = known.resume_offset(descriptor, status) if known else None
        if known is None or start is None:
            seen = cursor.seen if cursor else self._oldest
            yield from _lines_since(descriptor, status.st_size, seen, runtime)
        else:
            for low, high, _ in [*known.unread, (start, status.st_size, 0.0)]:
                for part in _lines_between(descriptor, low, high):
                    yield part, 0

    def _is_sub_agent_concerned(self, path: str, runtime: Runtime) -> bool:
        """Check the unread part of a sub-agent's transcript. Raises OSError."""
        status, start = status_at(path), self._offsets.get(path, 0)
        if (
            status is None
            or status.st_size == start
            or (not start and status.st_mtime < self._oldest)
        ):
            return False
        with Opened(path) as descriptor:
            parts = _lines_between(
                descriptor, start if start < status.st_size else 0, status.st_size
            )
            return any(
                [
                    self._are_about_work(_lines_with_calls(part, runtime.records), runtime)
                    for part in parts
                ]
            )

    def _are_about_work(self, lines: list[bytes], runtime: Runtime) -> bool:
        """Check if a call in `lines` may change a file in hand.

        The call edits or removes a file of that name, or may be a git command that includes one.
        Few lines contain the necessary bytes, and only these are decoded."""
        marked = []
        calls = [(runtime.records.without_results(line), line) for line in lines]
        if self._has_name(b"\n".join([call for call, _ in calls])):
            marked = [line for call, line in calls if self._has_name(call)]
        marked += _lines_with_commands([(_command_in(call), line) for call, line in calls])
        for record in [record for line in marked for record in objects_in(line)]:
            for wanted in _WANTED:
                for event in runtime.records.events(record, 0, wanted):
                    if isinstance(event, Entry) and self._concerns(event):
                        return True
        return False

    def _has_name(self, text: bytes) -> bool:
        if _ESCAPE in text and any([letters in text for letters in _LETTERS]):
            return True
        for mark in self._marks:  # noqa: SIM110  `any` takes longer
            if text.find(mark) >= 0:  # as in `_marks_in`
                return True
        return False

    def _concerns(self, entry: Entry) -> bool:
        entry.cwd = entry.cwd or "/"  # some runtimes name it in another record
        for action in actions_of([entry], self._may_be_wanted):
            if action.kind in (EDIT, REMOVE):
                if action.kind == REMOVE or action.path.rpartition("/")[2] in self._names:
                    return True
            elif action.kind == NAMED:
                if action.path == ANY or action.path in self._names:
                    return True
            elif (
                action.kind == GIT == self._takes
                and action.words
                and not is_read_only(action.words)
            ):
                return True
        return False

    def _may_be_wanted(self, command: str) -> bool:
        """Check if `collisions` wants a command, before it is parsed."""
        return may_concern(command, self._names)


def _marks_in(text: bytes, marks: list[bytes]) -> list[bytes]:
    """Return the marks in a text. `in` would take twice as long: it first tries them as numbers."""
    return [mark for mark in marks if text.find(mark) >= 0]


def _command_in(call: bytes) -> bytes:
    """Return the part of a call with its command; b"" if it has none."""
    key = call.find(b"ommand")
    # before the other key; without that key, anywhere but in the last byte
    shorter = call.find(b"cmd", 0, key)
    if key < 0 and shorter < 0:
        return b""
    return call[shorter if shorter >= 0 else key :]


def _lines_with_commands(commands: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the lines whose commands may run git, remove or move a directory, or rewrite unnamed
    files. Each line comes after its command."""
    text = b"\n".join([command for command, _ in commands])
    rewriters, marks = _marks_in(text, _REWRITERS), _marks_in(text, _COMMANDS)
    if not rewriters and not marks:
        return []
    return [
        line
        for command, line in commands
        if _marks_in(command, rewriters) or any([_begins_in(command, mark) for mark in marks])
    ]


def _begins_in(command: bytes, mark: bytes) -> bool:
    """Check if a word of a command begins with `mark`."""
    at = command.find(mark)
    while at >= 0:
        if not command[at - 1 : at].isalnum() or command[at - 2 : at] in _ESCAPED:
            return True
        at = command.find(mark, at + 1)
    return False


def _lines_with_calls(part: bytes, records: Records, begin: int = 0) -> list[bytes]:
    """Return the lines that may have calls, of those that begin at `begin` or later."""
    if not records.CALL_MARK:
        return [line for line in part[begin:].split(b"\n") if records.prefilter(line, _WANTED[0])]
    lines = []
    at = part.find(records.CALL_MARK, begin)
    while at >= 0:
        end = part.find(b"\n", at)
        lines.append(part[part.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(part)])
        at = part.find(records.CALL_MARK, end) if end >= 0 else -1
    return lines


def _lines_between(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the lines in `[start, end)` in parts; the last line may be incomplete.

    Raises OSError."""
    cut = b""
    while start < end:
        part = cut + read_at(descriptor, start, min(end, start + _PART_BYTES))
        start += _PART_BYTES
        if start < end:
            part, _, cut = part.rpartition(b"\n")
        yield part


def _lines_since(
    descriptor: int, size: int, since: float, runtime: Runtime
) -> Iterator[tuple[bytes, int]]:
    """Yield the lines back to the time `since`, in parts from the last one on, each with where they
    begin in it. Raises OSError."""
    for part, begin in _parts_backward(descriptor, size):
        yield part, begin
        end = part.find(b"\n", begin)
        for record in objects_in(part[begin : end if end >= 0 else len(part)]):
            if since > (runtime.records.time(record) or since):
                return


def _parts_backward(descriptor: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of the first `end` bytes in growing parts, from the last one on, each without
    its last line feed and with where its lines begin. Raises OSError."""
    # A line that is cut is read again: putting it together would copy its whole part.
    size = _FIRST_PART_BYTES
    pieces: list[bytes] = []  # of a line that no part contains
    low, high = end, end - 1
    while low > 0:
        low = max(0, low - size)
        size = min(2 * size, _LARGEST_PART_BYTES)
        part = read_at(descriptor, low, high)
        begin = part.find(b"\n") + 1 if low else 0
        if low and not begin:
            pieces.append(part)
            high = low
            continue
        yield b"".join([part, *reversed(pieces)]) if pieces else part, begin
        pieces, high = [], low + begin - 1


def needle(name: str) -> bytes:
    """Return bytes that every command or JSON text with the name of a file contains.

    They are the name's longest part without characters that may be escaped; b"" if there is
    none."""
    plain = "".join(
        [
            letter if letter.isascii() and (letter.isalnum() or letter in _PLAIN) else " "
            for letter in name
        ]
    )
    return max(plain.split(" "), key=len).encode()
