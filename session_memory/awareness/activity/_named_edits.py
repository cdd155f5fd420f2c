"""Finds sessions that edited a file that a prompt names, by searching for its name as bytes.

A session's news may have been told without this file, or may be too old or too long to be read."""

from __future__ import annotations

from ...common.system.files import Closing, Opened, open_regular, os, read_at, unfinished
from ...common.system.json import objects_in
from ...common.text.paths import resolved
from ...sessions.runtimes.records import CALLS, MESSAGES
from ...sessions.transcripts.entries import Entry
from ._concerned import needle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ...sessions.runtimes.base import Runtime
    from ._new_entries import NewEntries
    from ._relevance import PromptWords
    from .actions import FileAction
    from .changes import Changed, OwnSession

MOST_RECALLED = 3
MOST_SESSIONS = 40
MOST_NAMES = 12
SEARCHED_BYTES = 4 * 1024 * 1024  # of one transcript's end
TOTAL_BYTES = 24 * 1024 * 1024
MOST_DECODED = 30  # lines of one transcript for each name


def named_edits(
    reader: OwnSession, statuses: list[Changed], words: PromptWords, since: float
) -> dict[str, list[Entry]]:
    """Return the entries in which sessions last edited files that the prompt names, by session.

    Only sessions that wrote something since the time `since` are searched, the last written
    first."""
    needles = {needle(name) for name in [*words.files][:MOST_NAMES]} - {b""}
    recent = [pair for pair in statuses if pair[1].st_mtime >= since and not pair[0].is_remote]
    recent.sort(key=lambda pair: -pair[1].st_mtime)
    edits: dict[str, list[Entry]] = {}
    left = TOTAL_BYTES

    def search(pair: Changed) -> None:
        nonlocal left
        session, status = pair
        size = min(status.st_size, SEARCHED_BYTES, left)
        left -= size
        if not size:
            return
        with _opened(session.path, needles) as descriptor:
            if unwritten := unfinished(session.path):
                size = max(0, size - len(unwritten.content))
            end = os.fstat(descriptor).st_size
            first = max(0, end - size)
            content = read_at(descriptor, first, end)
        entries: dict[int, Entry] = {}
        for mark in needles:
            for entry in _entries_with(mark, content, first, reader.runtime_of(session)):
                if _is_named(entry, words, since):
                    entries[entry.offset] = entry
        if entries:
            edits[session.key] = [entries[offset] for offset in sorted(entries)]

    reader.deadline.attempt_each(
        recent[:MOST_SESSIONS] if needles else (), search, lambda pair: pair[0].path
    )
    return edits


def _opened(path: str, needles: Collection[bytes]) -> Closing:
    """Return the open transcript; an unwritten end without the `needles` stays so."""
    end = unfinished(path)
    if end and not any([mark in end.content for mark in needles]):
        return Closing(open_regular(path))
    return Opened(path)


def add_entries(new: NewEntries, edits: list[Entry]) -> None:
    """Add the `edits` to new entries, unless they were read with them."""
    ids = {entry.id or entry.offset for entry in new.entries}
    new.entries = [entry for entry in edits if (entry.id or entry.offset) not in ids] + new.entries


def unknown_edits(edits: list[Entry], in_hand: Mapping[str, list[FileAction]]) -> list[Entry]:
    """Return the edits of files that this session did not read or edit after them."""

    def is_known(entry: Entry, path: str) -> bool:
        return any([action.time >= (entry.timestamp or 0.0) for action in in_hand.get(path, ())])

    return [
        entry for entry in edits if not all([is_known(entry, path) for path in edited_paths(entry)])
    ]


def edited_paths(entry: Entry) -> list[str]:
    """Return the paths of the files that an entry edits, absolute if its directory is known."""
    tools = [tool for tool in entry.tools if tool.kind == "edit"]
    return [resolved(tool.argument, entry.cwd) or tool.argument for tool in tools]


def _is_named(entry: Entry, words: PromptWords, since: float) -> bool:
    return (entry.timestamp or 0.0) >= since and any(map(words.names_file, edited_paths(entry)))


def _entries_with(mark: bytes, content: bytes, first: int, runtime: Runtime) -> Iterator[Entry]:
    """Yield the entries with a call that have the bytes `mark`, the last one first.

    `content` is the end of a transcript, from the offset `first` on."""
    number, at = 0, content.rfind(mark)
    while at >= 0 and number < MOST_DECODED:
        start = content.rfind(b"\n", 0, at) + 1
        stop = content.find(b"\n", at)
        line = content[start : stop if stop >= 0 else len(content)]
        if runtime.records.CALL_MARK in line:
            number += 1
            for record in objects_in(line):
                for event in runtime.records.events(record, first + start, MESSAGES | CALLS):
                    if isinstance(event, Entry):
                        yield event
        at = content.rfind(mark, 0, start)
