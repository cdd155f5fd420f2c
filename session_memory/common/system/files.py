"""The file system: the calls of `os` without its import time, and private files.

`import os` takes a tenth of an interpreter start. Its calls come from `posix` (`nt` on Windows),
which is built in, and the hot path takes them from here. Nobody else can replace a private file.
"""

from __future__ import annotations

try:
    import posix as os
except ImportError:
    import nt as os  # type: ignore[no-redef]

__all__ = [
    "DATABASE_SUFFIXES",
    "UNFINISHED",
    "NotAFileError",
    "checksum",
    "expanded",
    "irregular",
    "is_directory",
    "is_file",
    "is_locked",
    "is_regular",
    "lock",
    "make_private_dir",
    "move_away",
    "names_in",
    "open_private",
    "open_regular",
    "os",
    "path_stamp",
    "path_text",
    "read_at",
    "read_each",
    "read_whole",
    "real_path",
    "replace",
    "stamp_of",
    "status_at",
    "user_dir",
    "without_links",
    "write_atomically",
    "write_private",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import stat_result
    from typing import Protocol

    class Unfinished(Protocol):
        """A file of this program whose end is known, but not written yet.

        `content` is the end before secrets are redacted, for a search. `version` is a number that
        identifies the finished file."""

        content: bytes
        is_finished: bool

        @property
        def version(self) -> int: ...

        def finish(self) -> None: ...

        def finished_status(self, status: stat_result) -> stat_result: ...


Stamp = tuple[int, int, int]  # inode, size in bytes, time of the last change in milliseconds

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NO_BLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)

READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | _NO_BLOCK | _BINARY
WRITE_FLAGS = os.O_CREAT | _NO_FOLLOW | _NO_BLOCK | _BINARY
_LARGE_PRIME = (1 << 30) - 35  # one digit of Python's, so dividing is many times faster
SMALL_BYTES = 4096
MOST_LINKS = 40  # in one path, as in Linux
LARGEST_BYTES = 64 * 1024  # of what should be small
# The files that a prompt leaves unfinished, by path. Opening one finishes it.
UNFINISHED: dict[str, Unfinished] = {}
# SQLite's files; the database last: without it a log is nothing
DATABASE_SUFFIXES = ("-journal", "-wal", "-shm", "")


class NotAFileError(OSError):
    """A directory, FIFO, device or symlink is at the path instead of a regular file."""


def is_regular(status: stat_result) -> bool:
    """Check if a status belongs to a regular file, as `stat.S_ISREG` does."""
    return status.st_mode & 0o170000 == 0o100000


def is_symlink(status: stat_result) -> bool:
    """Check if a status shows a symbolic link, as `stat.S_ISLNK` does."""
    return status.st_mode & 0o170000 == 0o120000


def stamp_of(status: stat_result) -> Stamp:
    """Return a stamp that stays the same while a file is unchanged, without opening the file.

    Do not trust a stamp if the file was younger than RACY_NANOSECONDS (transcripts.lines) when it
    was taken."""
    return status.st_ino, status.st_size, status.st_mtime_ns // 1_000_000


def path_text(path: str) -> str:
    """Return a path as text for storing and printing; a byte that is not UTF-8 becomes `é`."""
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def path_stamp(path: str) -> list[int]:
    """Return a stamp that changes when a file is written or a directory's list of names changes."""
    status = status_at(path)
    return [status.st_ino, status.st_size, status.st_mtime_ns] if status else [0, 0, 0]


def status_at(path: str, *, follow_symlinks: bool = True) -> stat_result | None:
    """Return the status of a path, or None.

    It is None if the path does not exist, may not be read, or cannot exist: a path from a
    transcript may contain NUL or half a surrogate pair (ValueError)."""
    try:
        return os.stat(path, follow_symlinks=follow_symlinks)
    except (OSError, ValueError):
        return None


def is_directory(path: str) -> bool:
    """Check that `path` is a directory, or a link to one."""
    status = status_at(path)
    return status is not None and status.st_mode & 0o170000 == 0o040000


def is_file(path: str) -> bool:
    """Check that `path` is a regular file, not a link to one."""
    status = status_at(path, follow_symlinks=False)
    return status is not None and is_regular(status)


def irregular(database: str) -> str:
    """Return the first path among a database's files that is not a regular file, or ''.

    No file is opened, because SQLite would wait for a FIFO's writer, and closing another descriptor
    would drop its locks."""
    for suffix in DATABASE_SUFFIXES:
        status = status_at(database + suffix, follow_symlinks=False)
        if status is not None and not is_regular(status):
            return database + suffix
    return ""


def user_dir(environ: Mapping[str, str]) -> str:
    """Return the home directory of the person who runs this, in one spelling; '' if unknown.

    It is unknown if neither HOME nor the system knows one, as for a container's made-up user. Only
    this function reads HOME. Raises SessionMemoryError if HOME is relative, because it would be
    another directory wherever a session runs."""
    home = environ.get("HOME")
    if not home:
        from os.path import expanduser

        home = expanduser("~").removeprefix("~")
    if home and not home.startswith("/") and home[1:2] != ":":
        from ..errors import SessionMemoryError

        raise SessionMemoryError(
            f'HOME is "{path_text(home)}", which is relative', "set HOME to an absolute path"
        )
    if "/../" in f"{home}/":
        return real_path(home)
    if "//" in home or "/./" in f"{home}/":
        home = "/" + "/".join([part for part in home.split("/") if part not in ("", ".")])
    return home.rstrip("/")


def expanded(path: str, environ: Mapping[str, str]) -> str:
    """Return a path that a person gave, with `~` and `~name` replaced by home directories."""
    if path == "~" or path.startswith("~/"):
        return user_dir(environ) + path[1:]
    if not path.startswith("~"):
        return path
    from os.path import expanduser

    return expanduser(path)


def real_path(path: str) -> str:
    """Return `os.path.realpath` of an absolute path, without importing that.

    Importing it takes longer than a prompt's reading of git."""
    if not path.startswith("/"):  # on Windows
        from os.path import realpath

        return realpath(path)
    resolved: list[str] = []
    parts = path.split("/")[::-1]
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            del resolved[-1:]
        elif part and part != ".":
            resolved.append(part)
            try:
                target = os.readlink("/" + "/".join(resolved))
            except (OSError, ValueError):
                continue
            links += 1
            if links > MOST_LINKS:
                return path
            resolved = [] if target.startswith("/") else resolved[:-1]
            parts += target.split("/")[::-1]
    return "/" + "/".join(resolved)


def without_links(path: str) -> str:
    """Return an absolute path without linked directories; the last part may be a link."""
    directory, slash, name = path.rpartition("/")
    return real_path(directory).rstrip("/") + slash + name if directory else path


def names_in(directory: str) -> list[str]:
    """Return the names in a directory in any order; none if it is missing or may not be read."""
    try:
        return os.listdir(directory)
    except (OSError, ValueError):
        return []


def open_regular(path: str) -> int:
    """Return a descriptor for reading, without waiting for a FIFO's writer.

    Raises NotAFileError for a symlink, a FIFO or a path that no file can have."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except ValueError as error:  # NUL, or half a surrogate pair
        raise NotAFileError(f"{error}: {path!a}") from None
    if not is_regular(os.fstat(descriptor)):
        os.close(descriptor)
        raise NotAFileError(f"not a regular file: {path}")
    return descriptor


class Closing:
    """A descriptor that is closed at the end of a `with` block.

    A deadline may interrupt the block at either end, so it is also closed once nothing uses it."""

    _descriptor = -1  # of one that could not be opened

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            self.__exit__()


class Opened(Closing):
    """The same of a regular file, which is finished before. Raises OSError."""

    def __init__(self, path: str) -> None:
        if UNFINISHED and path in UNFINISHED:
            UNFINISHED[path].finish()
        super().__init__(open_regular(path))


def read_at(descriptor: int, start: int, end: int) -> bytes:
    """Return the bytes of `[start, end)`, fewer if the file ends earlier."""
    blocks = []
    while start < end:
        block = _pread(descriptor, end - start, start)
        if not block:
            break
        blocks.append(block)
        start += len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def unfinished(path: str) -> Unfinished | None:
    """Return the unwritten end of a file; None if the file is finished."""
    file = UNFINISHED.get(path)
    return None if file is None or file.is_finished else file


def checksum(content: bytes) -> int:
    """Return the remainder of `content`, as a number, by a prime.

    It detects changes like a CRC, but without zlib."""
    return int.from_bytes(content, "little") % _LARGE_PRIME


def read_end(path: str, most_bytes: int) -> bytes:
    """Return the last bytes of a regular file, or all if it is shorter; b"" if it is unreadable."""
    try:
        with Opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            return read_at(descriptor, max(0, size - most_bytes), size)
    except OSError:
        return b""


def read_whole(path: str, most_bytes: int | None = None) -> bytes:
    """Return the content of a regular file. Raises OSError, also above `most_bytes`."""
    with Opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if most_bytes is not None and size > most_bytes:
            raise OSError(f"more than {most_bytes} bytes: {path}")
        return read_at(descriptor, 0, size)


def read_each(directory: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of these files of `directory`, except unreadable or large ones.

    This is fast for many small files: opening a file relative to its directory takes half the time
    of its whole path, and its size is requested only if it is large."""
    try:
        at = (
            os.open(directory, os.O_RDONLY | os.O_DIRECTORY) if hasattr(os, "O_DIRECTORY") else None
        )
    except OSError:
        return
    try:
        for name in names:
            try:
                descriptor = os.open(
                    name if at is not None else f"{directory}/{name}", READ_FLAGS, dir_fd=at
                )
            except OSError:
                continue
            try:
                content = os.read(descriptor, SMALL_BYTES)
                if len(content) == SMALL_BYTES:
                    size = os.fstat(descriptor).st_size
                    if size > LARGEST_BYTES:  # an agent may put anything there
                        continue
                    content = read_at(descriptor, 0, size)
            except OSError:  # a directory
                continue
            finally:
                os.close(descriptor)
            yield name, content
    finally:
        if at is not None:
            os.close(at)


def make_private_dir(path: str) -> None:
    """Make `path` and its missing parents, for this user alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not is_directory(path):
            raise
    except FileNotFoundError:
        make_private_dir(path.rpartition("/")[0])
        make_private_dir(path)  # by now another process may have made it


def open_private(path: str, flags: int) -> int:
    """Return a descriptor of `path`, creating it with mode 0600, and its directory if missing."""
    try:
        return os.open(path, flags | WRITE_FLAGS, 0o600)
    except FileNotFoundError:
        make_private_dir(path.rpartition("/")[0])
        return os.open(path, flags | WRITE_FLAGS, 0o600)


def move_away(path: str) -> None:
    """Rename a file of this program to `<path>.corrupt`. Raises OSError."""
    try:
        os.replace(path, path + ".corrupt")
    except OSError:  # one of them is a directory
        os.replace(path, f"{path}.corrupt-{os.getpid()}")


def open_own(path: str, flags: int) -> int:
    """Open a file as `open_private` does, and first move away what is not our own file.

    That is anything that is not a file or belongs to another user."""
    try:
        return open_private(path, flags)
    except OSError as error:
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            raise error from None
        if is_regular(status) and not isinstance(error, PermissionError):
            raise
    move_away(path)
    return open_private(path, flags)


def write_private(path: str, content: bytes) -> None:
    """Write a file of mode 0600; if that fails, as on a full disk, leave no file behind."""
    descriptor = open_own(path, os.O_WRONLY | os.O_TRUNC)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
    except OSError as error:
        os.unlink(path)
        error.filename = path  # which a write does not know
        raise
    finally:
        os.close(descriptor)


def write_atomically(path: str, content: bytes) -> None:
    """Replace `path` in one step: a reader sees either the old or the new content, whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    write_private(temporary, content)
    replace(temporary, path)


def replace(temporary: str, path: str) -> None:
    """Put a file that was written beside `path` in its place. Raises OSError."""
    try:
        os.replace(temporary, path)
    except IsADirectoryError:
        move_away(path)
        os.replace(temporary, path)


def lock(path: str, wait_seconds: float) -> int:
    """Return a descriptor with the exclusive lock of `path`, a file made for locking.

    The kernel releases the lock when the descriptor is closed. Raises LockedError if another
    process holds it for longer than `wait_seconds`, OSError if locking fails. A file system without
    locks (some NFS, FUSE and sandboxes) grants it to everyone. Two processes may then report the
    same news twice, which is better than never."""
    from time import monotonic, sleep

    from ..errors import LockedError

    deadline = monotonic() + wait_seconds
    while True:
        try:
            descriptor = open_own(path, os.O_RDWR)
        except PermissionError:
            os.chmod(path.rpartition("/")[0], 0o700)  # a directory that this program made
            descriptor = open_own(path, os.O_RDWR)
        while not try_lock(descriptor):
            if monotonic() > deadline:
                os.close(descriptor)
                raise LockedError(f"{path}: held by another process for {wait_seconds} s")
            sleep(0.005)
        if os.fstat(descriptor).st_nlink:  # else upkeep has deleted it
            return descriptor
        os.close(descriptor)


def is_locked(path: str) -> bool:
    """Check if a process holds the lock of `path`, by taking it for a moment.

    Return False if the file is not writable, or the file system has no locks."""
    from ..errors import LockedError

    try:
        os.close(lock(path, 0.0))
    except LockedError:
        return True
    except OSError:
        pass
    return False


def try_lock(descriptor: int) -> bool:
    """Lock an open file without waiting; return False if another process holds its lock."""
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        import errno

        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
    return True


def _seek_and_read(descriptor: int, length: int, offset: int) -> bytes:
    """Return `os.pread` for a system that has none."""
    os.lseek(descriptor, offset, 0)
    return os.read(descriptor, length)


_pread = getattr(os, "pread", _seek_and_read)
