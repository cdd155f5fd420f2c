"""Brings mirrors up to date for a runtime that rewrites or deletes its files.

Each file is identified by its stamp, and a prompt looks at only a few. The runtime decides what a
file adds to its mirror."""

from __future__ import annotations

from time import time_ns

from ...common.system.files import names_in, os, path_stamp, read_at
from ...common.system.json import as_object, decode
from .lines import settled_stamp
from .mirror import (
    COMMAND_LOCK_SECONDS,
    Exclusion,
    MirrorState,
    keep_state,
    mark_of,
    read_state,
    update_mirrors,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .mirror import Record


WATCHED_FILES = 60  # the most recently written; a prompt checks only these for changes
RECENT_NANOSECONDS = 24 * 3600 * 10**9  # for a prompt nothing older is read
# the most that a prompt reads of one file, and of all; the rest waits for upkeep
PROMPT_BYTES = 4 * 1024 * 1024
MOST_BYTES = 256 * 1024 * 1024
_READ = ".read"  # the list of read files and their stamps; not for prompts


class Source:
    """A file of a session.

    It has its stamp, the `key` that names it in marks, the directory of its project ('' if
    unknown), and the id of the parent session if it is a sub-agent's ('' otherwise). `beside` is
    the path of a file that is read with it ('' if there is none), such as a database's log."""

    HAS_OLDER = False  # whether it has sessions that a prompt leaves out because of their age

    def __init__(
        self, path: str, key: str, directory: str = "", parent: str = "", beside: str = ""
    ) -> None:
        self.path = path
        self.key = key
        self.stamp = path_stamp(path)
        self.directory = directory
        self.parent = parent
        self.watched = [(path, self.stamp)]
        if beside:
            self.watched.append((beside, path_stamp(beside)))
        # of both files
        self.stamps = [part for _, stamp in self.watched for part in stamp]
        self.modified = max([stamp[2] for _, stamp in self.watched])


class UnreadableError(ValueError):
    """A file cannot be read until it changes."""


def read_document(descriptor: int, most_bytes: int) -> tuple[Record, int]:
    """Return the JSON object in a file, empty for another value, and the file's size.

    Raises OSError; ValueError if it is longer than `most_bytes`; UnreadableError if it can never be
    read."""
    size = os.fstat(descriptor).st_size
    if size > most_bytes:
        raise (UnreadableError if size > MOST_BYTES else ValueError)("it is too long")
    content = read_at(descriptor, 0, size)
    try:
        return as_object(decode(content.decode("utf-8", "replace"))), size
    except ValueError:
        raise UnreadableError("its JSON is cut off or damaged") from None


if TYPE_CHECKING:
    # the directories whose listings show new files, and the files
    Listing = tuple[list[str], list[Source]]


def refresh_mirrors(
    root: str,
    exclusion: Exclusion,
    everything: bool,
    find: Callable[[], Listing],
    add: Callable[[Source, int], int],
) -> None:
    """Add new content of the files that `find` lists to the mirrors below `root`.

    It does so for the files that a prompt may report, or for all. `add` gets a file and how many
    bytes it may read, and returns how many it has read. It raises OSError or ValueError if the file
    cannot be read yet, and UnreadableError if it never can be; ingest then names the file."""
    update_mirrors(
        root,
        lambda: _refresh(root, exclusion, everything, find, add),
        wait_seconds=COMMAND_LOCK_SECONDS if everything else 0.0,
    )


def _refresh(
    root: str,
    exclusion: Exclusion,
    everything: bool,
    find: Callable[[], Listing],
    add: Callable[[Source, int], int],
) -> None:
    before = read_state(f"{root}/{_READ}")
    known = before.read if before.rules == exclusion.stamps else {}
    listed, sources = find()
    sources.sort(key=lambda source: source.modified, reverse=True)
    oldest = time_ns() - RECENT_NANOSECONDS
    room = PROMPT_BYTES
    kept, state, read_files = read_state(root), MirrorState(), MirrorState()
    state.unread = {
        source.key: kept.unread[source.key] for source in sources if source.key in kept.unread
    }
    unread, read, left = state.unread, read_files.read, set()
    for number, source in enumerate(sources):
        if known.get(source.path) == source.stamps:
            read[source.path] = source.stamps
        elif everything or (number < WATCHED_FILES and source.modified > oldest):
            unread.pop(source.key, None)
            try:
                room -= add(source, MOST_BYTES if everything else room)
                if everything or not source.HAS_OLDER:
                    read[source.path] = source.stamps
            except UnreadableError as error:
                read[source.path] = source.stamps
                unread[source.key] = source.stamp, f"{source.path}: {error}"
            except Exception:  # an odd file fails alone, for now
                left.add(source.path)
    state.watched = [(path, settled_stamp(path)) for path in listed]
    state.watched += [
        (path, stamp if source.path not in left else [])
        for source in sources[:WATCHED_FILES]
        for path, stamp in source.watched
    ]
    if read != known:
        read_files.rules = exclusion.stamps
        keep_state(f"{root}/{_READ}", read_files)
    state.gone = _without_source(root, sources, exclusion) if everything else kept.gone
    keep_state(root, state)


def _without_source(root: str, sources: list[Source], exclusion: Exclusion) -> list[str]:
    """Return the mirrors of files that are gone, by their paths below `root`.

    A mirror without text is not returned: it stays while a rule hides its session, then it is
    removed."""
    files = {source.key for source in sources}
    folders, mirrors = [name for name in names_in(root) if not name.startswith(".")], []
    for folder in folders:
        for name in names_in(f"{root}/{folder}"):
            if not name.endswith(".jsonl"):
                folders.append(f"{folder}/{name}")
            else:
                path = f"{root}/{folder}/{name}"
                mark = mark_of(path)
                if not mark or not files.isdisjoint(mark.get("files", ())):
                    continue
                if not mark.get("is_excluded"):
                    mirrors.append(f"{folder}/{name}")
                elif not exclusion.hides_deleted(mark):
                    os.unlink(path)
    return mirrors
