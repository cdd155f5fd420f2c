"""The archives in one folder: their names and facts, and the lock for changing them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from ...common.system.files import Opened, Stamp, lock, read_at, stamp_of, status_at
from .format import TRAILER_BYTES, facts_in, title_in, trailer_bytes

FIRST_LINE_BYTES = 4096
_TOKEN_BYTES = 8


class ArchivesLock:
    """The lock of a directory of archives and its private folder.

    Its file has a token. A process that adds, renames or moves an archive changes the token first,
    so a list of the archives is right while the token is the same. The time of a folder is not
    enough: two changes can have the same time."""

    def __init__(self, directory: str, wait_seconds: float) -> None:
        """Wait for the lock. Raises LockedError after `wait_seconds`, and OSError."""
        self._descriptor = lock(f"{directory}/.lock", wait_seconds)
        try:
            self.token = read_at(self._descriptor, 0, _TOKEN_BYTES)
        except OSError:
            self.close()
            raise

    def change_token(self) -> None:
        """Write another token, before a change. Raises OSError."""
        token = os.urandom(_TOKEN_BYTES)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, token)
        self.token = token

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


class KnownFolder:
    """The names of a folder's archives by their sessions, as of a time and a token."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}  # by name
        self._names: dict[str, list[str]] = {}
        self._stamps: dict[str, Stamp | None] = {}  # by name, of those that were read
        self._changed_at = 0
        self._token: bytes | None = None

    def is_current(self, directory: str, token: bytes | None) -> bool:
        """Check if nobody has changed the folder. Without the lock, `token` is None."""
        changed_at = os.stat(directory).st_mtime_ns
        return changed_at == self._changed_at and token in (None, self._token)

    def set_current(self, directory: str, token: bytes | None) -> None:
        """Note that the names are right for the folder as it is now."""
        self._changed_at = os.stat(directory).st_mtime_ns
        self._token = token

    def read(self, directory: str, token: bytes | None) -> None:
        """Read the names again, and the facts of archives that are new or were replaced."""
        self.set_current(directory, token)
        before, self._sessions, self._names = self._sessions, {}, {}
        stamps, self._stamps = self._stamps, {}
        for name in archive_names(directory):
            status = status_at(f"{directory}/{name}", follow_symlinks=False)
            stamp = self._stamps[name] = stamp_of(status) if status else None
            session = before.get(name) if stamp == stamps.get(name) else None
            if not session:
                session = (archive_facts(f"{directory}/{name}") or {}).get("session", "")
            self.add(name, session)

    def add(self, name: str, session: str) -> None:
        """Add an archive, unless it is known."""
        if name not in self._sessions:
            self._sessions[name] = session
            self._names.setdefault(session, []).append(name)

    def remove(self, name: str) -> None:
        """Remove an archive, if it is known."""
        session = self._sessions.pop(name, None)
        if session is not None:
            self._names[session].remove(name)

    def find(self, directory: str, session: str) -> tuple[str, dict[str, Any]] | None:
        """Return the path and the facts of a session's archive, as its file has them now."""
        for name in [*self._names.get(session, ())]:
            facts = archive_facts(f"{directory}/{name}")
            if facts is not None and facts["session"] == session:
                return f"{directory}/{name}", facts
            self.remove(name)
            self._changed_at = 0  # it has been renamed or replaced
        return None


def archive_names(directory: str) -> list[str]:
    """Return the names of the archives in a directory, in no particular order."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [
            name
            for name in os.listdir(directory)
            if name.endswith(".md") and not name.startswith(".")
        ]
    return []


def archive_facts(path: str) -> dict[str, Any] | None:
    """Return the facts in the last line of the archive at this path.

    Return None if it is not an archive."""
    try:
        with Opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            end = read_at(descriptor, max(0, size - TRAILER_BYTES), size)
            # decoding and matching all of it takes three times as long as reading
            facts = facts_in(end[-trailer_bytes(end) :].decode("utf-8", "replace"))
            # as of earlier versions
            if facts is not None and not isinstance(facts.get("title"), str):
                first = read_at(descriptor, 0, FIRST_LINE_BYTES).partition(b"\n")[0]
                facts["title"] = title_in(first.decode("utf-8", "replace"))
            return facts
    except OSError:
        return None
