"""Whether the agent got what its session was told last: its own transcript shows it where the runtime records that.

What was told last is kept among the cursors of the session, under LAST, as a cursor at the end of the transcript then:

    {"offset": 4096, "file": "<id>.jsonl", "text": <checksum>, "misses": 0, "cursors": {...}, "collisions": true}

`cursors` are those behind what was told, and with them may go a file of collisions. They count once the text is found
in the transcript; where it is not, all of it is told again. What is settled keeps `offset` and `misses` only. A
transcript that shows a prompt with its answer and nothing of hooks was written by a version of the runtime that records
none: after MOST_MISSES of these in a row the cursors count at once, as they do where there is no transcript.
"""

from __future__ import annotations

from ..system.files import open_regular, os, read_at, replace
from ..system.json import objects_in
from ..transcripts.cursor import id_checksum
from .cursor_file import LAST, are_cursors, collision_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes import Runtime
    from ..transcripts.cursor import Cursor
    from .changes import OwnSession

    Cursors = dict[str, Cursor]

WINDOW_BYTES = 256 * 1024  # the record stands a few KB behind; it goes on where no answer stands in it
MOST_BYTES = 16 * 1024 * 1024  # images that were pasted into the prompt stand before it
MOST_MISSES = 3
ARRIVED, LOST, UNRECORDED, NO_TRANSCRIPT = "arrived", "lost", "unrecorded", "no transcript"
_PENDING_SUFFIX = ".last"


def pending_path(cursor_file: str) -> str:
    """The file of collisions that counts once what was told last is found."""
    return collision_path(cursor_file) + _PENDING_SUFFIX


def with_last(before: Cursors, after: Cursors, text: str, own_path: str, has_collisions: bool) -> Cursors:
    """The cursors `before` with the note that `text` is told, which the cursors `after` are behind. `has_collisions`
    says that a file of collisions goes with them."""
    misses = before.get(LAST, {}).get("misses", 0)
    last: Cursor = {
        "offset": _size(own_path),
        "file": own_path.rpartition("/")[2],
        "text": id_checksum(text),
        "misses": misses,
    }
    if misses >= MOST_MISSES:
        return {**after, LAST: last}
    last["cursors"] = {key: cursor for key, cursor in after.items() if key != LAST}
    last["collisions"] = has_collisions
    return {**before, LAST: last}


def as_told(cursors: Cursors, cursor_file: str) -> tuple[Cursors, str]:
    """The cursors behind all that was told, whether it arrived or not, and the file of collisions that goes with them;
    '' for the one that counts."""
    last = cursors.get(LAST, {})
    if "cursors" not in last or not _is_whole(last):
        return cursors, ""
    return last["cursors"], pending_path(cursor_file) if last["collisions"] else ""


def settle(cursors: Cursors, own: OwnSession) -> Cursors:
    """The cursors in force of the session `own`, by what became of what was told last."""
    last = cursors[LAST]
    if not _is_whole(last):
        return {key: cursor for key, cursor in cursors.items() if key != LAST}
    # A session may go on in another transcript, as after a fork; this one shows what became of the prompt.
    found = _outcome(f"{own.path.rpartition('/')[0]}/{last['file']}", last, own.runtime)
    is_counted = "cursors" not in last
    note = {"offset": last["offset"], "misses": last["misses"]}
    if found == ARRIVED:
        note["misses"] = 0
    elif found == UNRECORDED and not is_counted:
        note["misses"] += 1
    if is_counted:
        return {**cursors, LAST: note}
    if found == ARRIVED or (found == NO_TRANSCRIPT and own.keeps_transcript is not True):
        if last["collisions"]:
            try:
                replace(pending_path(own.cursor_file), collision_path(own.cursor_file))
            except FileNotFoundError:
                pass
        return {**last["cursors"], LAST: note}
    return {**cursors, LAST: note}


def _is_whole(last: Cursor) -> bool:
    """Whether every part of the note is what such a part can be."""
    return (
        are_cursors(last.get("cursors", {}))
        and [type(last.get(key)) for key in ("offset", "text", "misses", "file")] == [int, int, int, str]
        and type(last.get("collisions", False)) is bool
        and ("collisions" in last or "cursors" not in last)
        and last["offset"] >= 0
        and "/" not in last["file"]
    )


def _outcome(path: str, last: Cursor, runtime: Runtime) -> str:
    """What a transcript shows of what was told last."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return NO_TRANSCRIPT
    try:
        size = os.fstat(descriptor).st_size
        # Some runtimes write the file anew as they open it.
        start = last["offset"] if last["offset"] <= size else max(0, size - WINDOW_BYTES)
        end, rest, is_answered = min(size, start + MOST_BYTES), b"", False
        while start < end and not is_answered:
            stop = min(end, start + WINDOW_BYTES)
            *lines, rest = (rest + read_at(descriptor, start, stop)).split(b"\n")
            if stop == end:
                lines.append(rest)
            told = _told_in(lines, runtime)
            if any([id_checksum(part) == last["text"] for text in told for part in text.split("\n\n")]):
                return ARRIVED
            is_answered, has_failed = _is_answered(lines, runtime)
            if has_failed:
                return LOST
            start = stop
        return UNRECORDED if is_answered else LOST
    finally:
        os.close(descriptor)


def _told_in(lines: list[bytes], runtime: Runtime) -> list[str]:
    """The texts that the lines show as told by hooks."""
    may_show, told = runtime.RECORDS.may_show_told, runtime.RECORDS.told
    records = [record for line in lines if may_show(line) for record in objects_in(line)]
    return [text for record in records for text in told(record) or ()]


def _is_answered(lines: list[bytes], runtime: Runtime) -> tuple[bool, bool]:
    """Whether the lines hold a prompt with a reply to it; and whether a hook failed, which shows that the runtime
    records what becomes of them."""
    means = runtime.RECORDS
    is_answered = has_prompt = has_failed = False
    for line in lines:
        for record in objects_in(line) if means.may_matter(line) or means.may_show_told(line) else ():
            entry = means.entry(record, 0)
            has_failed = has_failed or means.told(record) == ()
            has_prompt = has_prompt or (entry is not None and entry.role == "user")
            is_answered = is_answered or (has_prompt and entry is not None and entry.role == "assistant")
    return is_answered, has_failed


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
