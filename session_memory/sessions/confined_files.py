"""Files of a group, reached step by step from its host's directory.

A group's agent controls the group's directories and may run in its own sandbox. A link that leads
nowhere for the agent may lead into another group on the host. So no step follows a link, and an
open file stays the same file, whatever an agent puts there later.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..common.errors import SessionMemoryError
from ..common.system.files import READ_FLAGS, NotAFileError, is_regular, read_at

_DIRECTORY_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_DESCRIPTORS = "/proc/self/fd"


class OutsideGroupError(SessionMemoryError):
    """A path in a group's directory is a link, or has another type than expected."""


class TooLargeError(OSError):
    """A file is larger than any that belongs there."""


@contextmanager
def directory_below(root: str, path: str, *, make: bool = False) -> Iterator[int]:
    """Open the directory `path` below `root` and yield its descriptor.

    With `make`, create missing directories. Raises OutsideGroupError if a step is a link or not a
    directory, and FileNotFoundError."""
    names = os.path.relpath(path, root).split(os.sep)
    descriptor = os.open(root, _DIRECTORY_FLAGS)
    try:
        for name in names:
            if make:
                _make(name, descriptor)
            try:
                inner = os.open(name, _DIRECTORY_FLAGS, dir_fd=descriptor)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise OutsideGroupError(
                    f"{path}: {error.strerror}", "put a directory in its place"
                ) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def pinned(root: str, path: str, *, make: bool = False) -> Iterator[str]:
    """Yield a path to the directory `path` as it is now, even if something else replaces it.

    This is for functions that need a path. Only Linux has such paths; elsewhere, yield `path`
    itself after one check. Raises as `directory_below` does."""
    if os.open not in os.supports_dir_fd:  # Windows
        check_steps(root, path, make=make)
        yield path
        return
    with directory_below(root, path, make=make) as descriptor:
        yield pinned_descriptor(descriptor, path)


def pinned_descriptor(descriptor: int, path: str) -> str:
    """Return a path to the file that `descriptor` has open.

    If the system has no such paths, return `path`, where the file was opened."""
    return f"{_DESCRIPTORS}/{descriptor}" if os.path.isdir(_DESCRIPTORS) else path


def open_inside(root: str, path: str) -> int:
    """Return a descriptor for reading the regular file `path` below `root`, without blocking.

    Raises OutsideGroupError if a step is a link, NotAFileError, FileNotFoundError and other
    OSErrors."""
    with directory_below(root, os.path.dirname(path)) as directory:
        descriptor = os.open(os.path.basename(path), READ_FLAGS, dir_fd=directory)
    if not is_regular(os.fstat(descriptor)):
        os.close(descriptor)
        raise NotAFileError(f"not a regular file: {path}")
    return descriptor


def read_inside(directory: int, name: str, limit: int) -> bytes:
    """Return the content of the regular file `name` in a directory.

    Never waits for the writer of a FIFO. Raises NotAFileError, TooLargeError above `limit` bytes,
    FileNotFoundError and other OSErrors."""
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotAFileError(error.errno, f"not a regular file ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if not is_regular(status):
            raise NotAFileError("not a regular file")
        content = read_at(descriptor, 0, limit + 1) if status.st_size <= limit else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > limit:
        raise TooLargeError(f"larger than {limit} bytes")
    return content


def write_inside(directory: int, name: str, content: bytes) -> None:
    """Replace the file `name` of a directory atomically.

    A reader sees either the old or the new content, complete. The new content is on disk before it
    becomes visible. Raises OSError."""
    temporary = f".{name}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, _NEW_FLAGS, 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(temporary, dir_fd=directory)
        raise


def _make(name: str, directory: int | None) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=directory)


def check_steps(root: str, path: str, *, make: bool = False) -> None:
    """Raise OutsideGroupError unless every step from `root` to `path` below it is a directory."""
    step = root
    for name in os.path.relpath(path, root).split(os.sep):
        step = os.path.join(step, name)
        if make:
            _make(step, None)
        if not stat.S_ISDIR(os.lstat(step).st_mode):
            raise OutsideGroupError(
                f"{step}: not a directory, or a link to one", "put a directory in its place"
            )
