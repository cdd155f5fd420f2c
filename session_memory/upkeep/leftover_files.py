"""Files that nobody needs any more, which upkeep removes: what a killed process left beside a file that it was about to
replace, after an hour, and what is kept for the prompts of a session (cursors and what lies beside them), where none
has changed it for 90 days. Should the session go on all the same, it hears what a new one would."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..memories.folders import folder_of, groups_of
from ..settings.homes import private_beside
from ..system.files import is_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.location import StoreLocation

UNFINISHED_SECONDS = 3600.0
CURSOR_SECONDS = 90 * 86_400.0
_NAME = re.compile(r".\.\d+(-\d+)?\.tmp$")  # as files.write_atomically has them: with the number of the process
_ARCHIVE = re.compile(r"^\..+\.tmp$")  # as archives.writer has them, among archives alone
_CURSORS = re.compile(r"(?<!\.lock)$")  # whoever waits for a lock has it open


class _Leftovers(NamedTuple):
    """Below `directory` the files with such `names` that are so old."""

    directory: str
    names: re.Pattern[str]
    seconds: float = UNFINISHED_SECONDS


def remove_leftovers(location: StoreLocation) -> None:
    """Removes them from the state, the memories and the archives of a store. Links are not followed: what lies in a
    group is its agent's."""
    now = time.time()
    for directory, names, seconds in _leftovers(location):
        with suppress(OSError):  # it is not there, or not ours
            for files, descriptor in _files_below(directory, names):
                for name in files:
                    _remove(name, descriptor, now - seconds)


def _leftovers(location: StoreLocation) -> Iterator[_Leftovers]:
    yield _Leftovers(location.home.state_dir, _NAME)
    yield _Leftovers(os.path.dirname(location.home.cursor_file("x")), _CURSORS, CURSOR_SECONDS)
    for memories in [folder_of(location, group) for group in groups_of(location)]:
        yield from (_Leftovers(memories, _NAME), _Leftovers(private_beside(memories), _NAME))
    for archives in location.archives:
        yield from (_Leftovers(one, _ARCHIVE) for one in (archives.directory, private_beside(archives.directory)))


def _files_below(directory: str, names: re.Pattern[str]) -> Iterator[tuple[Iterator[str], int | None]]:
    """Of each directory below this one the files with such names, and its descriptor, which only Windows has not."""
    if hasattr(os, "fwalk"):
        for _, _, files, descriptor in os.fwalk(directory):
            yield filter(names.search, files), descriptor
    else:
        for folder, _, files in os.walk(directory):
            yield (f"{folder}/{name}" for name in filter(names.search, files)), None


def _remove(name: str, directory: int | None, until: float) -> None:
    with suppress(OSError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if is_regular(status) and status.st_mtime < until:
            os.unlink(name, dir_fd=directory)
