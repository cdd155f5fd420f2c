"""The one base of all errors that the pack raises on purpose, and what to say of any other."""

from __future__ import annotations


class SessionMemoryError(Exception):
    """What went wrong and where, in one line; `hint` is what to do about it, where the message does not say."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class WrongCallError(SessionMemoryError):
    """A command was called with something that it does not take: as with a wrong option, its exit code is 2."""


class ConfigError(SessionMemoryError):
    """config.yaml cannot be used as it is."""


class LockedError(SessionMemoryError):
    """Somebody else held a lock for longer than we wait."""


def described(error: Exception) -> str:
    """An error in one line: what went wrong, and where."""
    if not isinstance(error, OSError):
        return str(error)
    from errno import EDQUOT, ENOSPC

    if error.errno in (ENOSPC, EDQUOT):
        return no_room(error.filename)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def no_room(path: str | None) -> str:
    """What to say where a file could not be written since its device is full. What was written need not be known."""
    return f"no space left on the device that holds {path}" if path else "no space left on the device"
