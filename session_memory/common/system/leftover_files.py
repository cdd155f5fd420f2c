"""Delete files that nobody needs any more, by name and age."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from .files import Closing, is_regular, try_lock

UNFINISHED_SECONDS = 3600.0
# as files.write_atomically names them: with the process id
UNFINISHED = re.compile(r".\.\d+(-\d+)?\.tmp$")
_LOCK = re.compile(r"\.lock$")


def remove_old_files(
    directory: str, names: re.Pattern[str] = UNFINISHED, seconds: float = UNFINISHED_SECONDS
) -> None:
    """Delete files below a directory with matching names, unchanged for `seconds`.

    By default these are the half-written files of killed processes. A lock file is deleted only if
    nobody holds it and the file that it locks is gone. Symlinks are not followed, because an agent
    controls its own files."""
    until = time.time() - seconds
    with suppress(OSError):  # the directory is gone, or not ours
        for files, descriptor in _files_below(directory, names):
            for name in files:
                _remove(name, descriptor, until)


def _files_below(
    directory: str, names: re.Pattern[str]
) -> Iterator[tuple[Iterator[str], int | None]]:
    """Yield, for each directory below this one, its matching files and its descriptor.

    The descriptor is None on Windows."""
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
            if _LOCK.search(name):
                _remove_lock(name, directory)
            else:
                os.unlink(name, dir_fd=directory)


def _remove_lock(name: str, directory: int | None) -> None:
    """Delete a lock file that nobody holds, if the file that it locks is gone.

    files.lock notices the deletion. Raises OSError."""
    with suppress(FileNotFoundError):
        os.stat(name.removesuffix(".lock"), dir_fd=directory, follow_symlinks=False)
        return
    with Closing(
        os.open(name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), dir_fd=directory)
    ) as descriptor:
        if try_lock(descriptor):
            os.unlink(name, dir_fd=directory)
