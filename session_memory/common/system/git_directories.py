"""Directories in which git works for one task, below the system's temporary directory.

Each is locked while it is in use. The next run removes unlocked ones, which a killed process left
behind.
"""

from __future__ import annotations

import sys

from .files import is_directory, names_in, os, read_whole, status_at, try_lock

PREFIX = "session-memory-git-"
# the HEAD in a directory of trial merges; until 0.4.2 it alone identifies them
TRIAL_HEAD = b"ref: refs/heads/none\n"
_PREFIX_UNTIL_0_4_2 = "session-memory-"
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class GitDirectory:
    """A new directory for this user alone, locked until `remove`. Raises OSError."""

    def __init__(self) -> None:
        self._descriptor = -1
        while self._descriptor < 0:
            self.path = f"{_parent_directory()}/{PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
            os.mkdir(self.path, 0o700)
            # not if another run took it for a leftover just then
            self._descriptor = _locked(self.path)

    def __enter__(self) -> GitDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the directory with its content; do nothing the second time."""
        if self._descriptor >= 0:
            _remove(self.path)
            os.close(self._descriptor)
            self._descriptor = -1


def remove_leftovers() -> None:
    """Remove the directories of this user that killed processes left.

    Without working locks, remove none, because any of them may be in use."""
    parent = _parent_directory()
    for name in names_in(parent):
        if name.startswith(_PREFIX_UNTIL_0_4_2) and _is_ours(f"{parent}/{name}", name):
            descriptor = _locked(f"{parent}/{name}")
            if descriptor >= 0:
                again = _locked(f"{parent}/{name}")
                if again < 0:
                    _remove(f"{parent}/{name}")
                else:
                    os.close(again)
                os.close(descriptor)


def _parent_directory() -> str:
    """Return the system's directory for temporary files."""
    known = variables()
    places = [known.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    return next(
        (place.rstrip("/") for place in places if place.startswith("/") and is_directory(place)),
        "/tmp",
    )


def variables() -> dict[str, str]:
    """Return the variables of this process, even without the module `os`."""
    whole = sys.modules.get("os")
    if whole is not None:
        return dict(whole.environ)
    return {_text(name): _text(value) for name, value in os.environ.items()}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _user_id() -> int:
    """Return this process's user id; 0 on Windows, where every file has the user 0."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _is_ours(path: str, name: str) -> bool:
    status = status_at(path, follow_symlinks=False)
    if status is None or status.st_mode & 0o170000 != 0o040000 or status.st_uid != _user_id():
        return False
    if name.startswith(PREFIX):
        return True
    try:
        return read_whole(f"{path}/HEAD", len(TRIAL_HEAD)) == TRIAL_HEAD
    except OSError:
        return False


def _locked(path: str) -> int:
    """Return a descriptor of a directory with its lock.

    Return -1 if another process holds the lock or has removed the directory."""
    try:
        descriptor: int = os.open(path, os.O_RDONLY | _DIRECTORY)
    except OSError:
        return -1
    status, there = os.fstat(descriptor), None
    if try_lock(descriptor):
        there = status_at(path, follow_symlinks=False)
    if there is not None and (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino):
        return descriptor
    os.close(descriptor)
    return -1


def _remove(path: str) -> None:
    """Remove a directory and its content as far as possible, without following links."""
    for name in names_in(path):
        try:
            os.unlink(f"{path}/{name}")
        except OSError:
            _remove(f"{path}/{name}")
    try:
        os.rmdir(path)
    except OSError:
        pass
