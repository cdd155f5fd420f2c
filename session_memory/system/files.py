"""The file system: the calls of `os` without its import time, and files of ours that nobody can put something else in.

`import os` takes a tenth of an interpreter start, and its calls are those of `posix` (`nt` on Windows), which is there
from the start. The hot path has them from here.
"""

from __future__ import annotations

try:
    import posix as os
except ImportError:
    import nt as os  # type: ignore[no-redef]

__all__ = [
    "DATABASE_SUFFIXES", "NotAFileError", "irregular", "is_directory", "is_file", "is_regular", "lock",
    "make_private_dir", "move_away", "names_in", "open_private", "open_regular", "os", "path_stamp", "path_text",
    "read_at", "read_each", "read_whole", "real_path", "replace", "stamp_of", "status_at", "without_links",
    "write_atomically", "write_private",
]  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import stat_result

    Stamp = tuple[int, int, int]  # inode, size in bytes, time of the last change in milliseconds

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NO_BLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)

READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | _NO_BLOCK | _BINARY
WRITE_FLAGS = os.O_CREAT | _NO_FOLLOW | _NO_BLOCK | _BINARY
SMALL_BYTES = 4096
MOST_LINKS = 40  # in one path, as in Linux
LARGEST_BYTES = 64 * 1024  # of what should be small
DATABASE_SUFFIXES = ("-journal", "-wal", "-shm", "")  # SQLite's files; the database last: without it a log is nothing


class NotAFileError(OSError):
    """A directory, FIFO, device or link stands where a regular file belongs."""


def is_regular(status: stat_result) -> bool:
    """What `stat.S_ISREG` tells."""
    return status.st_mode & 0o170000 == 0o100000


def stamp_of(status: stat_result) -> Stamp:
    """What tells that a file is unchanged, without opening it: as long as this is the same, nothing was written to it.

    The time may not be trusted where it was younger than RACY_NANOSECONDS of transcripts.cursor as it was looked at.
    """
    return status.st_ino, status.st_size, status.st_mtime_ns // 1_000_000


def path_text(path: str) -> str:
    """A path as text that can be stored and printed: a byte that is not UTF-8, to Python half a pair, as `\\xe9`."""
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def path_stamp(path: str) -> list[int]:
    """Return what stays the same as long as nothing is added to a directory or taken from it, or written to a file."""
    status = status_at(path)
    return [status.st_ino, status.st_size, status.st_mtime_ns] if status else [0, 0, 0]


def status_at(path: str, *, follow_symlinks: bool = True) -> stat_result | None:
    """Return what `stat` says of a path; None where nothing is there, it may not be asked for, or no file can have such
    a path: a transcript may name one with NUL or half a surrogate pair (ValueError)."""
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
    """Return the path of the first of a database's files that is no regular file; '' if all are, or are missing.

    No file is opened: SQLite would wait for a FIFO's writer, and the close of another descriptor would drop its locks.
    """
    for suffix in DATABASE_SUFFIXES:
        status = status_at(database + suffix, follow_symlinks=False)
        if status is not None and not is_regular(status):
            return database + suffix
    return ""


def real_path(path: str) -> str:
    """What `os.path.realpath` tells of an absolute path; importing that takes longer than all else that a prompt needs
    of git's files."""
    if not path.startswith("/"):  # on Windows
        from os.path import realpath

        return realpath(path)
    found: list[str] = []
    parts = path.split("/")[::-1]
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            del found[-1:]
        elif part and part != ".":
            found.append(part)
            try:
                target = os.readlink("/" + "/".join(found))
            except (OSError, ValueError):
                continue
            links += 1
            if links > MOST_LINKS:
                return path
            found = [] if target.startswith("/") else found[:-1]
            parts += target.split("/")[::-1]
    return "/" + "/".join(found)


def without_links(path: str) -> str:
    """An absolute path through no linked directory; the last part may be a link."""
    directory, slash, name = path.rpartition("/")
    return real_path(directory).rstrip("/") + slash + name if directory else path


def names_in(directory: str) -> list[str]:
    """Return the names in a directory, in no particular order; none where it is not there, or somebody else's."""
    try:
        return os.listdir(directory)
    except (OSError, ValueError):
        return []


def open_regular(path: str) -> int:
    """Return a descriptor for reading; raises NotAFileError rather than follow a link or wait for a FIFO's writer, and
    where no file can have such a path."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except ValueError as error:  # NUL, or half a surrogate pair
        raise NotAFileError(f"{error}: {path!a}") from None
    if not is_regular(os.fstat(descriptor)):
        os.close(descriptor)
        raise NotAFileError(f"not a regular file: {path}")
    return descriptor


def read_at(descriptor: int, start: int, end: int) -> bytes:
    """The bytes of `[start, end)`, fewer where the file ends before."""
    blocks = []
    while start < end:
        block = _pread(descriptor, end - start, start)
        if not block:
            break
        blocks.append(block)
        start += len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def read_end(path: str, most_bytes: int) -> bytes:
    """The last bytes of a regular file, or all where it has no more; none where it is not there, or no such file.
    Raises OSError where it cannot be read."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return b""
    try:
        size = os.fstat(descriptor).st_size
        return read_at(descriptor, max(0, size - most_bytes), size)
    finally:
        os.close(descriptor)


def read_whole(path: str, most_bytes: int | None = None) -> bytes:
    """What a regular file holds. Raises OSError, also for one of more than `most_bytes`."""
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        if most_bytes is not None and size > most_bytes:
            raise OSError(f"more than {most_bytes} bytes: {path}")
        return read_at(descriptor, 0, size)
    finally:
        os.close(descriptor)


def read_each(directory: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The name and the content of these files of `directory`, without those that cannot be read or are no small files.

    Made for many small files: a file is found from the directory in half the time that its whole path takes, and only
    where it is a larger one it is asked for its size.
    """
    try:
        at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY) if hasattr(os, "O_DIRECTORY") else None
    except OSError:
        return
    try:
        for name in names:
            try:
                descriptor = os.open(name if at is not None else f"{directory}/{name}", READ_FLAGS, dir_fd=at)
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
    """Makes `path` and whatever is missing above it, for this user alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not is_directory(path):
            raise
    except FileNotFoundError:
        make_private_dir(path.rpartition("/")[0])
        make_private_dir(path)  # by now another process may have made it


def open_private(path: str, flags: int) -> int:
    """A descriptor of `path`, made with mode 0600, and its directory with it, where it is missing."""
    try:
        return os.open(path, flags | WRITE_FLAGS, 0o600)
    except FileNotFoundError:
        make_private_dir(path.rpartition("/")[0])
        return os.open(path, flags | WRITE_FLAGS, 0o600)


def move_away(path: str) -> None:
    """Moves what stands in the place of a file of ours to `<path>.corrupt`. Raises OSError."""
    try:
        os.replace(path, path + ".corrupt")
    except OSError:  # one of them is a directory
        os.replace(path, f"{path}.corrupt-{os.getpid()}")


def _open_own(path: str, flags: int) -> int:
    """As `open_private`, but what is no file, or somebody else's, is moved away: it would stand there for ever."""
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
    """Writes a file of mode 0600; leaves none behind if that fails, as on a full disk."""
    descriptor = _open_own(path, os.O_WRONLY | os.O_TRUNC)
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
    """Replaces `path` in one step: a reader sees the old content or the new, whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    write_private(temporary, content)
    replace(temporary, path)


def replace(temporary: str, path: str) -> None:
    """Puts a file that was written beside `path` in its place. Raises OSError."""
    try:
        os.replace(temporary, path)
    except IsADirectoryError:
        move_away(path)
        os.replace(temporary, path)


def lock(path: str, wait_seconds: float) -> int:
    """Return a descriptor with the exclusive lock of `path`, a file made for it; the kernel releases it at its close.

    Raises LockedError if somebody else holds it for longer than `wait_seconds`, OSError if it cannot be had. A file
    system that knows no locks (some of NFS, FUSE and sandboxes) gives it to everybody: what two do at once there is
    told twice, which is better than nothing ever.
    """
    from time import monotonic, sleep

    from ..errors import LockedError

    try:
        descriptor = _open_own(path, os.O_RDWR)
    except PermissionError:
        os.chmod(path.rpartition("/")[0], 0o700)  # a directory of ours, as it was made
        descriptor = _open_own(path, os.O_RDWR)
    deadline = monotonic() + wait_seconds
    while not _try_lock(descriptor):
        if monotonic() > deadline:
            os.close(descriptor)
            raise LockedError(f"{path}: held by another process for {wait_seconds} s")
        sleep(0.005)
    return descriptor


def _try_lock(descriptor: int) -> bool:
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
    """`os.pread` for a system that has none."""
    os.lseek(descriptor, offset, 0)
    return os.read(descriptor, length)


_pread = getattr(os, "pread", _seek_and_read)
