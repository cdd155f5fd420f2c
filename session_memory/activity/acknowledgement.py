"""Whether the agent got what its session was told last: its own transcript shows it where the runtime records that.

What was told last is kept among the cursors of the session, under LAST, as a cursor at the end of the transcript then:

    {"offset": 4096, "file": "<id>.jsonl", "text": <checksum>, "at": 1790000000.0, "prompt": "<id>", "process": "4711",
     "misses": 0, "cursors": {...}, "collisions": true}

`cursors` are those that moved with what was told, and with them may go a file of collisions. They count once the
transcript shows that the agent got the text: its record is there, and the conversation goes on from it. A prompt that
is cancelled before the answer leaves its record beside the conversation. Where nothing follows it yet, the process
tells: the same one has cancelled it, another one has resumed the conversation with it. What the agent did not get is
told again, all of it; but not to a prompt of the same turn, since the record may come as late as the turn goes on. What
is settled keeps, in place of `cursors`, whether it was `acknowledged`.

A transcript that shows a prompt with its answer and nothing of hooks was written by a version of the runtime that
records none: after MOST_MISSES of these in a row the cursors count at once. So they do where there is none, after as
many, or, where the same process goes on, from the first on.

The record stands up to 30 KB behind where the transcript ended; 70 KB where a prompt was typed while the agent worked,
plus the results of tools that came before it, of which one may have 350 KB; some MB where images were pasted. So the
search, which reads WINDOW_BYTES at once, goes on until an answer shows that nothing is to come, at most for MOST_BYTES.
What is there is found in the first window nearly always, and what is lost would stand at the end of the file: neither
reads far. Where MOST_BYTES end the search (20 ms), it is told again, and the log says why.
"""

from __future__ import annotations

from ..runtimes.records import CALLS, INJECTED, LINKS, MESSAGES, Injected, ParentLink
from ..system.files import is_file, open_regular, os, read_at, replace
from ..system.json import objects_in
from ..transcripts.cursor import id_checksum
from ..transcripts.entries import Entry
from .cursor_file import LAST, are_cursors, collision_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtimes import Runtime
    from ..transcripts.cursor import Cursor
    from .changes import OwnSession

    Cursors = dict[str, Cursor]

WINDOW_BYTES = 256 * 1024
MOST_BYTES = 16 * 1024 * 1024
MOST_MISSES = 3
ARRIVED = "arrived"
UNANSWERED = "unanswered"  # its record is there, and nothing follows it
LOST = "lost"
UNRECORDED = "unrecorded"
NO_TRANSCRIPT = "no transcript"
UNSHOWN = "unshown"  # the process goes on, and writes none
_PENDING_SUFFIX = ".last"


class Delivered:
    """What a session was told last: when, in seconds since the epoch; the `text`, None where its transcript does not
    show it; and whether it is `acknowledged`, None where that cannot be known yet."""

    def __init__(self, at: float, text: str | None, acknowledged: bool | None) -> None:
        self.at = at
        self.text = text
        self.acknowledged = acknowledged


class Settled:
    """The `cursors` in force, by what became of what was told last. `takes_collisions` says that the file of collisions
    that waited for that counts too, `is_open` that it cannot be known yet; `notes` are lines for the log."""

    def __init__(
        self, cursors: Cursors, notes: list[str], *, takes_collisions: bool = False, is_open: bool = False
    ) -> None:
        self.cursors = cursors
        self.notes = notes
        self.takes_collisions = takes_collisions
        self.is_open = is_open


def kind_of_delivery(runtime: Runtime) -> str:
    """What sessions of a runtime can rely on, for people."""
    if runtime.SHOWS_WHAT_WAS_TOLD:
        return "as the agent saw it: what its transcript does not show is told again"
    return "at least once: its transcripts do not show what a hook told"


def pending_path(cursor_file: str) -> str:
    """The file of collisions that counts once what was told last is found."""
    return collision_path(cursor_file) + _PENDING_SUFFIX


def take_collisions(cursor_file: str) -> None:
    """Has the file of collisions count that waited. Raises OSError."""
    try:
        replace(pending_path(cursor_file), collision_path(cursor_file))
    except FileNotFoundError:  # it was done before, by a hook that was killed then
        pass


def with_last(
    before: Cursors, after: Cursors, text: str, own: OwnSession, now: float, *, has_collisions: bool
) -> Cursors:
    """The cursors `before` with the note that `text` is told, which the cursors `after` are behind. `has_collisions`
    says that a file of collisions goes with them."""
    misses = before.get(LAST, {}).get("misses", 0)
    last: Cursor = {
        "offset": _size(own.path),
        "file": own.path.rpartition("/")[2],
        "text": id_checksum(text),
        "at": now,
        "prompt": own.prompt_id,
        "process": own.process,
        "misses": misses,
    }
    if misses >= MOST_MISSES:
        return {**after, LAST: last}
    last["cursors"] = {key: cursor for key, cursor in after.items() if before.get(key) is not cursor}
    last["collisions"] = has_collisions
    return {**before, LAST: last}


def as_told(cursors: Cursors, cursor_file: str) -> tuple[Cursors, str]:
    """The cursors behind all that was told, whether it arrived or not, and the file of collisions that goes with them;
    '' for the one that counts."""
    last = cursors.get(LAST, {})
    if "cursors" not in last or not _is_whole(last):
        return cursors, ""
    return {**cursors, **last["cursors"]}, pending_path(cursor_file) if last["collisions"] else ""


def settle(cursors: Cursors, own: OwnSession) -> Settled:
    """The cursors in force of the session `own`, to whom something was told last that is not settled."""
    last = cursors[LAST]
    if not _is_whole(last):
        return Settled({key: cursor for key, cursor in cursors.items() if key != LAST}, [])
    search = _searched(last, own)
    outcome = _judged(search, last, own)
    if not outcome:
        return Settled(cursors, [], is_open=True)
    is_counted = "cursors" not in last
    misses = last["misses"]
    if outcome == ARRIVED:
        misses = 0
    elif outcome in (UNRECORDED, NO_TRANSCRIPT) and not is_counted:
        misses += 1
    note: Cursor = {key: last[key] for key in ("offset", "file", "text", "at")}
    note.update(misses=misses, acknowledged=outcome == ARRIVED)
    if outcome in (ARRIVED, UNSHOWN) and not is_counted:
        return Settled({**cursors, **last["cursors"], LAST: note}, [], takes_collisions=last["collisions"])
    notes = []
    if search.is_cut and not is_counted:
        notes.append(f"{own.path}: what was told last is told again: it is not in {MOST_BYTES >> 20} MB behind it")
    return Settled({**cursors, LAST: note}, notes)


def delivered(cursors: Cursors, own: OwnSession) -> Delivered | None:
    """What the session `own` was told last; None where that is not known."""
    last = cursors.get(LAST, {})
    if "at" not in last or not _is_whole(last):
        return None
    search = _searched(last, own)
    if "acknowledged" in last:
        return Delivered(last["at"], search.text, last["acknowledged"])
    is_known = search.outcome != UNANSWERED
    return Delivered(last["at"], search.text, search.outcome == ARRIVED if is_known else None)


def _is_whole(last: Cursor) -> bool:
    """Whether every part of the note is what such a part can be."""
    kinds = {"offset": int, "text": int, "misses": int, "file": str, "at": float}
    return (
        are_cursors(last.get("cursors", {}))
        and all([type(last.get(key)) is kind for key, kind in kinds.items()])
        and type(last.get("collisions", False)) is bool
        and ("collisions" in last or "cursors" not in last)
        and last["offset"] >= 0
        and "/" not in last["file"]
    )


def _judged(search: _Search, last: Cursor, own: OwnSession) -> str:
    """What became of what was told last, by what the transcript shows of it; '' where that cannot be known yet."""
    outcome = search.outcome
    if not search.is_over and own.prompt_id and own.prompt_id == last.get("prompt"):
        return ""
    is_same_process = bool(own.process) and own.process == last.get("process")
    if outcome == UNANSWERED:
        return LOST if is_same_process else ARRIVED
    is_unshown = outcome == NO_TRANSCRIPT and is_same_process and not own.keeps_transcript
    return UNSHOWN if is_unshown else outcome


class _Search:
    """What the lines show that stand in the transcript behind where it ended when something was told: the `outcome` so
    far, and the `text`, where that was found. `is_cut` says that there are more lines."""

    def __init__(self, checksum: int, runtime: Runtime) -> None:
        self.outcome = LOST
        self.text: str | None = None
        self.is_over = self.is_cut = False
        self._checksum = checksum
        self._records = runtime.records
        self._ids: set[str] = set()  # of the record that shows the text, and of those that go on from it
        self._has_prompt = self._has_failed = False

    def take(self, line: bytes) -> None:
        """Look at the next line."""
        if self._records.prefilter(line, INJECTED | (MESSAGES | CALLS if self.text is None else LINKS)):
            for record in objects_in(line):
                if not self.is_over:
                    self._take_record(record)

    def _take_record(self, record: dict[str, Any]) -> None:
        link, entry, has_text = None, None, False
        for event in self._records.events(record, 0, MESSAGES | INJECTED | LINKS):
            if isinstance(event, Injected):
                self._has_failed = self._has_failed or not event.texts
                has_text = has_text or self._is_in(event.texts)
            elif isinstance(event, ParentLink):
                link = event
            elif isinstance(event, Entry):
                entry = event
        if has_text:
            self.outcome = UNANSWERED
            self._ids.add(link.id if link is not None else "")
        elif self.text is not None:
            if link is not None:
                self._follow(link)
        elif entry is not None:
            self._take_entry(entry)

    def _is_in(self, told: tuple[str, ...]) -> bool:
        for part in [part for text in told for part in text.split("\n\n")]:
            if id_checksum(part) == self._checksum:
                self.text = part
                return True
        return False

    def _follow(self, link: ParentLink) -> None:
        """See whether the conversation goes on from the text, or from what stands before it."""
        is_behind = link.parent_id in self._ids or "" in self._ids
        if is_behind:
            self._ids.add(link.id)
        if link.is_message:
            self._end(ARRIVED if is_behind else LOST)

    def _take_entry(self, entry: Entry) -> None:
        """See whether a prompt was answered without the text, and whether a hook failed: that shows that the runtime
        records what becomes of them."""
        if entry.role == "user":
            self._has_prompt = True
        elif self._has_prompt:
            self._end(LOST if self._has_failed else UNRECORDED)

    def _end(self, outcome: str) -> None:
        self.outcome, self.is_over = outcome, True


def _searched(last: Cursor, own: OwnSession) -> _Search:
    """Return what became of what was told last, by the transcript of then: a session may go on in another, as after a
    fork. One that cannot be read is as good as none."""
    search = _Search(last["text"], own.runtime)
    path = f"{own.path.rpartition('/')[0]}/{last['file']}"
    if not is_file(path) or own.deadline.attempt(path, _look_through, path, last["offset"], search) is None:
        search.outcome = NO_TRANSCRIPT
    return search


def _look_through(path: str, offset: int, search: _Search) -> bool:
    """Have `search` take the lines of a transcript from `offset` on, as far as MOST_BYTES reach. Raises OSError."""
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        # Some runtimes write the file anew as they open it.
        start = offset if offset <= size else max(0, size - WINDOW_BYTES)
        end = min(size, start + MOST_BYTES)
        pieces: list[bytes] = []  # of a line that is longer than a window
        while start < end and not search.is_over:
            stop = min(end, start + WINDOW_BYTES)
            whole, line_end, rest = read_at(descriptor, start, stop).rpartition(b"\n")
            if line_end:
                for line in b"".join([*pieces, whole]).split(b"\n"):
                    search.take(line)
                pieces = []
            pieces.append(rest)
            start = stop
        if end == size:
            search.take(b"".join(pieces))
        search.is_cut = end < size and not search.is_over
        return True
    finally:
        os.close(descriptor)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
