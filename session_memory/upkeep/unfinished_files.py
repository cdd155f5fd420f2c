"""Files that a killed process left beside those which it was about to replace: upkeep removes them after an hour."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..memories.folders import folder_of, groups_of
from ..settings.homes import private_beside
from ..system.files import is_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.location import StoreLocation

UNFINISHED_SECONDS = 3600
_NAME = re.compile(r".\.\d+(-\d+)?\.tmp$")  # as files.write_atomically has them: with the number of the process
_ARCHIVE = re.compile(r"^\..+\.tmp$")  # as archives.writer has them, among archives alone


def remove_unfinished(location: StoreLocation) -> None:
    """Removes them from the state, the memories and the archives of a store. Links are not followed: what lies in a
    group is its agent's."""
    until = time.time() - UNFINISHED_SECONDS
    for directory, names in _directories(location):
        with suppress(OSError):  # it is not there, or not ours
            for _, _, files, descriptor in os.fwalk(directory):
                for name in filter(names.search, files):
                    _remove(name, descriptor, until)


def _directories(location: StoreLocation) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Where such files may lie, and what they are called there."""
    yield location.home.state_dir, _NAME
    for memories in [folder_of(location, group) for group in groups_of(location)]:
        yield from ((memories, _NAME), (private_beside(memories), _NAME))
    for archives in location.archives:
        yield from ((archives.directory, _ARCHIVE), (private_beside(archives.directory), _ARCHIVE))


def _remove(name: str, directory: int, until: float) -> None:
    with suppress(OSError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if is_regular(status) and status.st_mtime < until:
            os.unlink(name, dir_fd=directory)
