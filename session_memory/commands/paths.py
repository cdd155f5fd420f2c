"""Which files and directories are meant by paths on the command line, and under which keys the store knows them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..store.ingest.sources import SourceDirectory

if TYPE_CHECKING:
    from ..store.ingest.sources import SourceFile
    from ..store.location import StoreLocation


class NoTranscriptError(SessionMemoryError):
    """A path at which there is no transcript to be read."""


def directory_at(path: str, location: StoreLocation) -> SourceDirectory:
    """A directory of transcripts. Keys are relative to it, so that a backup and what it is of are the same files; in
    a watched directory they are what they always are. Raises NoTranscriptError."""
    absolute = os.path.abspath(path)
    if not os.path.isdir(absolute):
        raise NoTranscriptError(f"{path}: there is no such directory")
    group = _group(absolute, location)
    for root in (watched.root for watched in location.watched):
        if absolute.startswith(root + "/"):
            return SourceDirectory(root, group, (absolute[len(root) + 1 :],), is_named=True)
    return SourceDirectory(absolute, group, is_named=True)


def file_at(path: str, location: StoreLocation) -> SourceFile:
    """A transcript: its key is relative to the watched directory that it lies in, else to the one over its project's.

    Raises NoTranscriptError.
    """
    absolute = os.path.abspath(path)
    root = next(
        (root for root in (watched.root for watched in location.watched) if absolute.startswith(root + "/")), ""
    )
    parent = os.path.dirname(os.path.dirname(absolute))
    found = SourceDirectory(root or parent, _group(absolute, location), is_backup=True).file_at(absolute)
    if found is None or not os.path.isfile(absolute):
        raise NoTranscriptError(f"{path}: there is no such file", "what the store holds of a file that is gone stays")
    return found


def _group(path: str, location: StoreLocation) -> str:
    """The group that a file belongs to: that of the directory it lies in, else the one that asks."""
    for watched in location.watched:
        if path == watched.root or path.startswith(watched.root + "/"):
            return watched.home
    homes = {watched.home for watched in location.watched}
    if len(homes) > 1:
        hint = "name the group's directory: --home PATH"
        raise NoTranscriptError(f"{path}: it does not say which group it belongs to", hint)
    return next(iter(homes), "")
