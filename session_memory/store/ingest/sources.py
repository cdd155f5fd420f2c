"""Which transcripts there are: the files below the watched directories, each with its key and its runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ...system.confined_files import directory_below, open_inside
from ...system.files import open_regular
from ..place import DEEPEST, SUFFIX


class Source(NamedTuple):
    """A directory that holds transcripts, of the group `home` ('' without groups). `is_live` tells that runtimes write
    there: what lies there takes the place of a backup. No link is followed from `confined_to` on, a directory above the
    root, where that is given: the files are an agent's that may have put one there.
    """

    root: str
    home: str = ""
    is_live: bool = False
    confined_to: str = ""


class Found(NamedTuple):
    """A transcript: `key` is its path relative to the source's root; `modified` in milliseconds since the epoch."""

    source: Source
    key: str
    path: str
    size: int
    modified: int
    inode: int


def find_files(source: Source) -> list[Found]:
    """The transcripts of a source, the oldest first, so that an original comes before its fork. Raises OSError where
    the root itself cannot be read, OutsideGroupError where a link leads to it from where it is confined to; what cannot
    be read below it is left out."""
    if source.confined_to:
        with directory_below(source.confined_to, source.root):
            pass
    found = list(_below(source, source.root, "", 1))
    return sorted(found, key=lambda one: (one.modified, one.key))


def found_at(source: Source, path: str) -> Found | None:
    """One transcript by its path, which lies below the source's root; None if it is no file."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    key = os.path.relpath(path, source.root).replace(os.sep, "/")
    return Found(source, key, path, status.st_size, status.st_mtime_ns // 1_000_000, status.st_ino)


def open_found(found: Found) -> int:
    """A descriptor for reading a transcript. Raises OSError, OutsideGroupError."""
    confined_to = found.source.confined_to
    return open_inside(confined_to, found.path) if confined_to else open_regular(found.path)


def _below(source: Source, directory: str, prefix: str, depth: int) -> Iterator[Found]:
    with os.scandir(directory) as listing:
        entries = list(listing)
    for entry in entries:
        if entry.name.endswith(SUFFIX):
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                modified = status.st_mtime_ns // 1_000_000
                yield Found(source, prefix + entry.name, entry.path, status.st_size, modified, status.st_ino)
        elif depth < DEEPEST and entry.is_dir(follow_symlinks=not source.confined_to):
            try:
                yield from _below(source, entry.path, f"{prefix}{entry.name}/", depth + 1)
            except OSError:
                continue
