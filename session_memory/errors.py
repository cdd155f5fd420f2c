"""The one base of all errors that the pack raises on purpose."""

from __future__ import annotations


class SessionMemoryError(Exception):
    """What went wrong and where, in one line; `hint` is what to do about it, where the message does not say."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(SessionMemoryError):
    """config.yaml cannot be used as it is."""


class LockedError(SessionMemoryError):
    """Somebody else held a lock for longer than we wait."""
