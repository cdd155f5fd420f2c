"""Changes to single files of the user: the content before and after, each made in one step."""

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
    """A change of a file from the content `before` to the content `after`; None for no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o600  # of a new file

    @property
    def kind(self) -> str:
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def is_needed(self) -> bool:
        """False where the file already is as it shall be."""
        return self.before != self.after

    def as_dict(self) -> dict[str, str]:
        return {"path": str(self.path), "change": self.kind}

    def diff(self) -> str:
        sides = (self.before, self.after)
        old, new = (
            (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
            for content in sides
        )
        old_name, new_name = (
            os.devnull if content is None else str(self.path) for content in sides
        )
        lines = []
        for line in difflib.unified_diff(old, new, old_name, new_name):
            lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
        return "".join(lines)

    def check(self) -> None:
        """Raise CannotWriteError if the directory is not writable, before anything is changed."""
        target = Path(os.path.realpath(self.path))
        directory = target.parent
        if self.is_needed and self.path.is_symlink() and not directory.is_dir():
            raise CannotWriteError(
                f"{self.path}: it is a link to {target}, whose directory does not exist",
                "create that directory, or remove the link",
            )
        existing = directory if directory.exists() else missing_directories(directory)[0].parent
        if self.is_needed and not os.access(existing, os.W_OK | os.X_OK):
            raise CannotWriteError(
                f"{self.path}: {existing} cannot be written to", "nothing was changed"
            )

    def make(self) -> None:
        """Makes the change. Raises ChangedMeanwhileError, CannotWriteError."""
        if not self.is_needed:
            return
        if read_if_there(self.path) != self.before:
            raise ChangedMeanwhileError(
                f"{self.path}: another program changed it just now", "run this again"
            )
        try:
            if self.after is None:
                os.unlink(os.path.realpath(self.path))
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_in_place(self.path, self.after, self.mode)
        except OSError as error:
            raise CannotWriteError(f"{self.path}: {error.strerror or error}") from error


def read_if_there(path: Path) -> bytes | None:
    """Return the content of a file; None if it is missing.

    Raises CannotWriteError if it is not a regular file, or unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CannotWriteError(f"{path}: it is not a regular file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotWriteError(f"{path}: {error.strerror or error}") from error


def write_in_place(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file in one step, keeping its mode and owner; a link stays a link.

    `mode` is for a new file. For files of our own, use `system.files.write_atomically`. Raises
    OSError."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # left by a process with the same id that died
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _copy_mode_and_owner(target, temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def checksum(content: bytes) -> str:
    """Return the SHA-256 of a file's content, by which the ledger recognises it."""
    return hashlib.sha256(content).hexdigest()


def missing_directories(path: Path) -> list[Path]:
    """Return `path` and its parents that do not exist, the outermost first."""
    missing: list[Path] = []
    while not path.exists() and path != path.parent:
        missing.insert(0, path)
        path = path.parent
    return missing


def remove_if_empty(directory: Path) -> None:
    """Remove a directory if it is empty. Never raise OSError."""
    try:
        directory.rmdir()
    except OSError:
        return


def _copy_mode_and_owner(old: Path, new: Path, mode: int) -> None:
    try:
        status = old.stat()
    except FileNotFoundError:
        new.chmod(mode)
        return
    new.chmod(stat.S_IMODE(status.st_mode))
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
        try:
            os.chown(new, status.st_uid, status.st_gid)
        # somebody else's file that we may write; it becomes ours, as with any editor
        except PermissionError:
            return
