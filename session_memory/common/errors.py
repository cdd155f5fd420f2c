"""The base of all errors that the pack raises on purpose, and descriptions of other errors."""

from __future__ import annotations


class SessionMemoryError(Exception):
    """An error whose message says in one line what went wrong and where.

    `hint` says what to do about it, if the message does not."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class WrongCallError(SessionMemoryError):
    """A command got an invalid argument. As for an unknown option, it exits with 2."""


class ConfigError(SessionMemoryError):
    """config.yaml is invalid."""


class LockedError(SessionMemoryError):
    """Another process held a lock for longer than we wait."""


def described(error: Exception) -> str:
    """Describe an error in one line: what went wrong, and where."""
    if not isinstance(error, OSError):
        return str(error)
    from errno import EDQUOT, ENOSPC

    if error.errno in (ENOSPC, EDQUOT):
        return no_room(error.filename)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def no_room(path: str | None) -> str:
    """Return the message for a file that could not be written because its device is full."""
    return f"no space left on the device with {path}" if path else "no space left on the device"
