"""Changes to single files of the user: what was there, what shall be, made in one step each."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..errors import SessionMemoryError


class ChangedMeanwhileError(SessionMemoryError):
    """A file is not what it was when the change was planned."""


class CannotWriteError(SessionMemoryError):
    """A file or directory cannot be read or written."""


@dataclass(frozen=True)
class FileChange:
    """`path` as it was read (`before`, None where there was no file) and as it shall be (`after`, None for gone)."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o600  # of a new file

    @property
    def is_one(self) -> bool:
        """Whether anything is to be changed at all."""
        return self.before != self.after

    @property
    def kind(self) -> str:
        """added, changed, removed or unchanged."""
        if not self.is_one:
            return "unchanged"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = ([] if text is None else _lines(text) for text in (self.before, self.after))
        old_name, new_name = (os.devnull if text is None else str(self.path) for text in (self.before, self.after))
        lines = []
        for line in difflib.unified_diff(old, new, old_name, new_name):
            lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
        return "".join(lines)

    def check(self) -> None:
        """Raises CannotWriteError where it is plain that the change could not be made."""
        directory = Path(os.path.realpath(self.path)).parent
        existing = directory if directory.exists() else missing_directories(directory)[0].parent
        if self.is_one and not os.access(existing, os.W_OK | os.X_OK):
            raise CannotWriteError(f"{self.path}: {existing} cannot be written to", "nothing was changed")

    def make(self) -> None:
        """Makes the change. Raises ChangedMeanwhileError, CannotWriteError."""
        if not self.is_one:
            return
        if read_if_there(self.path) != self.before:
            raise ChangedMeanwhileError(f"{self.path}: somebody else changed it just now", "run this again")
        try:
            if self.after is None:
                os.unlink(os.path.realpath(self.path))
            else:
                write_in_place(self.path, self.after, self.mode)
        except OSError as error:
            raise CannotWriteError(f"{self.path}: {error.strerror or error}") from error


def read_if_there(path: Path) -> bytes | None:
    """What the file holds; None where there is none. Raises CannotWriteError for what is no file or not readable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CannotWriteError(f"{path}: it is not a regular file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotWriteError(f"{path}: {error.strerror or error}") from error


def write_in_place(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replaces the file in one step; it keeps its mode and its owner, a link stays a link. `mode` is for a new file."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a process with this number that died
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _take_over(target, temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def checksum(content: bytes) -> str:
    """What a file's content is known by in the ledger."""
    return hashlib.sha256(content).hexdigest()


def missing_directories(path: Path) -> list[Path]:
    """`path` and those above it that are not there, the outermost first."""
    missing: list[Path] = []
    while not path.exists() and path != path.parent:
        missing.insert(0, path)
        path = path.parent
    return missing


def remove_if_empty(directory: Path) -> None:
    """Removes a directory that holds nothing."""
    try:
        directory.rmdir()
    except OSError:
        return


def _take_over(target: Path, temporary: Path, mode: int) -> None:
    """Gives the new file the mode and the owner of the one it will replace."""
    try:
        status = target.stat()
    except FileNotFoundError:
        temporary.chmod(mode)
        return
    temporary.chmod(stat.S_IMODE(status.st_mode))
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.chown(temporary, status.st_uid, status.st_gid)
        except PermissionError:  # a file of somebody else that we may write: it becomes ours, as with any editor
            return


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines(keepends=True)
