"""Finds the files and directories that paths on the command line mean, and their keys in the store."""

from __future__ import annotations

import os

from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..runtimes.detection import runtime_of
from ..store.ingest.sources import COMPRESSED, DEEPEST, SUFFIX, SourceDirectory, SourceFile
from ..store.location import StoreLocation
from ..system.files import open_regular

MOST_LEVELS = 12  # below a named directory, searched for transcripts


class NoTranscriptError(SessionMemoryError):
    """A path at which there is no transcript to be read."""


def directories_at(path: str, location: StoreLocation) -> list[SourceDirectory]:
    """Return the directories of transcripts in `path` at any depth: a runtime's own, or a backup of several. Keys are
    relative to each, so that a backup and its original are the same files; in a watched directory they are the usual
    keys. Raises NoTranscriptError."""
    absolute = os.path.abspath(path)
    if not os.path.isdir(absolute):
        raise NoTranscriptError(f"{path}: there is no such directory")
    group = _group(absolute, location)
    for watched in location.watched:
        root, deepest = watched.root, watched.deepest
        if f"{absolute}/".startswith(f"{root}/"):
            within = (absolute[len(root) + 1 :],) if absolute != root else watched.within
            return [SourceDirectory(root, group, within, is_named=True, deepest=deepest)]
    roots = _roots_in(absolute, MOST_LEVELS) or {absolute: DEEPEST}
    return [
        SourceDirectory(root, group, is_named=True, is_asked_for=True, deepest=deepest, place_of=_place_of)
        for root, deepest in roots.items()
    ]


def _roots_in(directory: str, levels: int) -> dict[str, int]:
    """Return the directories at or below this one that have transcripts as in a runtime's (by project), each with the
    depth of the transcripts."""
    found: dict[str, int] = {}
    for runtime in all_runtimes():
        for root in [runtime.transcripts_dir(place) for place in (directory, f"{directory}/{runtime.USUAL_DIR}")]:
            if _holds_transcripts(root, runtime.DEEPEST):
                found[root] = max(runtime.DEEPEST, found.get(root, 0))
    for root in list(found):  # the runtime may keep archived ones beside it
        beside = [folder for folder in _folders(os.path.dirname(root)) if folder not in found]
        found.update({folder: DEEPEST for folder in beside if any(map(_place_of, _names(folder)))})
    if found or not levels:
        return found
    if _holds_transcripts(directory, DEEPEST):
        return {directory: DEEPEST}
    return {root: deepest for folder in _folders(directory) for root, deepest in _roots_in(folder, levels - 1).items()}


def _holds_transcripts(directory: str, levels: int) -> bool:
    """Check if a transcript is at most so many levels below."""
    wanted = [name for name in _names(directory) if name.endswith((SUFFIX, SUFFIX + COMPRESSED))]
    if any(_is_transcript(f"{directory}/{name}") for name in wanted):
        return True
    return levels > 1 and any(_holds_transcripts(folder, levels - 1) for folder in _folders(directory))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _is_transcript(path: str) -> bool:
    try:
        descriptor = open_regular(path)
    except OSError:
        return False
    try:
        if path.endswith(COMPRESSED):  # ingesting reports files that are not transcripts
            return True
        return runtime_of(descriptor) is not None
    finally:
        os.close(descriptor)


def _folders(directory: str) -> list[str]:
    """Return the directories in a directory, without links to any."""
    try:
        with os.scandir(directory) as entries:
            return sorted([entry.path for entry in entries if entry.is_dir(follow_symlinks=False)])
    except OSError:
        return []


def file_at(path: str, location: StoreLocation) -> SourceFile:
    """Return a transcript. Its key is relative to the watched directory that it is in, else to the parent of its
    project's.

    Raises NoTranscriptError.
    """
    absolute = os.path.abspath(path)
    root = next(
        (root for root in (watched.root for watched in location.watched) if absolute.startswith(root + "/")), ""
    )
    parent = os.path.dirname(os.path.dirname(absolute))
    directory = SourceDirectory(root or parent, _group(absolute, location), is_backup=True, place_of=_place_of)
    found = directory.file_at(absolute)
    if found is None or not os.path.isfile(absolute):
        raise NoTranscriptError(f"{path}: there is no such file", "what the store holds of a file that is gone stays")
    return found


def _place_of(file: str) -> str:
    """Return the place of a transcript among its runtime's, by its name; '' if the name does not tell."""
    places = (runtime.place_of(file.removesuffix(COMPRESSED)) for runtime in all_runtimes())
    return next((place for place in places if place), "")


def _group(path: str, location: StoreLocation) -> str:
    """Return the group of a file: that of its directory, else the caller's."""
    for watched in location.watched:
        if path == watched.root or path.startswith(watched.root + "/"):
            return watched.home
    homes = {watched.home for watched in location.watched}
    if len(homes) > 1:
        hint = "name the group's directory: --home PATH"
        raise NoTranscriptError(f"{path}: it does not say which group it belongs to", hint)
    return next(iter(homes), "")
