"""The record of forgotten sessions, which must not come back.

`<database>.forgotten.jsonl`, beside the store, has hashes of sessions and directories, each with a
time up to which it is forgotten. `<database>.forgotten.messages` has salted hashes of the forgotten
messages, because a fork, a copy or a renamed file repeats them in a session of another name. Nobody
can read either. Both outlive the database. A prompt loads this only if something was forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...common.system.files import os, read_whole, status_at, write_atomically
from ...common.system.json import decode, encode
from ..transcripts.entries import Entry
from .homes import FORGETTING, FORGOTTEN, FORGOTTEN_MESSAGES

# The group, the hashes of a session and of a directory ('' for any), and the time up to which
# everything is forgotten, in milliseconds since 1970.
Tombstone = tuple[str, str, str, int]
_KEYS = ("home", "session", "directory", "before")
# begins the file of the forgotten messages; then come the salt and the sorted hashes
_FORMAT = b"messages1"
_SALT_BYTES = 16
# with a million forgotten messages, one in 18 million million other messages is mistaken for one
_HASH_BYTES = 8
_HEAD_BYTES = len(_FORMAT) + _SALT_BYTES


def session_tombstone(home: str, session_id: str, before: int) -> Tombstone:
    """Return the tombstone of a home's session, for its content up to a time."""
    return home, _hash(session_id), "", before


def directory_tombstone(home: str, directory: str, before: int) -> Tombstone:
    """Return the tombstone of all sessions started in a directory or below it."""
    return home, "", _hash(directory.rstrip("/")), before


def _path_of(database: str) -> str:
    """Return the path of the file that lists a database's forgotten sessions."""
    return database + FORGOTTEN


def is_unfinished(database: str) -> bool:
    """Check if steps of a forget are left: see app.upkeep.forget_journal."""
    return status_at(database + FORGETTING, follow_symlinks=False) is not None


def read(database: str) -> list[Tombstone]:
    """Return all that was forgotten of a database. Raises OSError."""
    return read_file(_path_of(database))


def read_file(path: str) -> list[Tombstone]:
    """Return all tombstones in such a file, except damaged lines. Raises OSError."""
    try:
        content = read_whole(path)
    except FileNotFoundError:
        return []
    tombstones = []
    for line in content.splitlines():
        try:
            value = decode(line.decode())
            home, session, directory, before = [value[key] for key in _KEYS]
            if all([isinstance(part, str) for part in (home, session, directory)]):
                tombstones.append((home, session, directory, int(before)))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return tombstones


def add(database: str, tombstones: Iterable[Tombstone]) -> None:
    """Add tombstones to a database's file. Raises OSError."""
    lines = [
        encode(dict(zip(_KEYS, tombstone)))
        for tombstone in dict.fromkeys([*read(database), *tombstones])
    ]
    write_atomically(_path_of(database), ("\n".join(lines) + "\n").encode())


def forgotten_until(
    tombstones: Iterable[Tombstone], home: str, session_id: str, directory: str
) -> int | None:
    """Return the time up to which a session from `directory` was forgotten, in milliseconds.

    Return None if it never was."""
    of_home = [tombstone for tombstone in tombstones if tombstone[0] == home]
    if not of_home:
        return None
    hashed = _hash(session_id)
    steps = directory.replace("\\", "/").rstrip("/").split("/") if directory else []
    above = {_hash("/".join(steps[: count + 1])) for count in range(len(steps))}
    return max(
        [before for _, session, path, before in of_home if session == hashed or path in above],
        default=None,
    )


class ForgottenMessages:
    """The forgotten messages of one store, by salted hashes shared by a message and its copies."""

    def __init__(self, database: str) -> None:
        """Raises OSError."""
        try:
            content = read_whole(database + FORGOTTEN_MESSAGES)
        except FileNotFoundError:
            content = b""
        self._salt = content[len(_FORMAT) : _HEAD_BYTES] if content.startswith(_FORMAT) else b""
        self._hashes = content[_HEAD_BYTES:] if self._salt else b""

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def has(self, mark: str) -> bool:
        """Check if a forgotten message has this mark."""
        wanted, low, high = self._hash(mark), 0, len(self._hashes) // _HASH_BYTES
        while low < high:
            middle = (low + high) // 2
            known = self._hashes[middle * _HASH_BYTES : (middle + 1) * _HASH_BYTES]
            if known == wanted:
                return True
            low, high = (middle + 1, high) if known < wanted else (low, middle)
        return False

    def with_marks(self, marks: Iterable[str]) -> bytes:
        """Return the content of the file with these marks added."""
        self._salt = self._salt or os.urandom(_SALT_BYTES)
        before = range(0, len(self._hashes), _HASH_BYTES)
        hashes = {self._hashes[at : at + _HASH_BYTES] for at in before}
        hashes.update([self._hash(mark) for mark in marks])
        return _FORMAT + self._salt + b"".join(sorted(hashes))

    def _hash(self, mark: str) -> bytes:
        from hashlib import blake2b

        return blake2b(
            mark.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES, key=self._salt
        ).digest()


def add_messages(database: str, marks: Iterable[str]) -> None:
    """Note forgotten messages by their marks (see transcripts.marks). Raises OSError."""
    write_atomically(database + FORGOTTEN_MESSAGES, ForgottenMessages(database).with_marks(marks))


def forgotten_of(database: str, home: str) -> ForgottenSessions:
    """Return the forgotten sessions of the group `home` in a store. Raises OSError."""
    return ForgottenSessions({_path_of(database): home})


class ForgottenSessions:
    """The forgotten sessions of some stores, by their files, each with its sessions' group."""

    def __init__(
        self, files: Mapping[str, str], read: Callable[[str], list[Tombstone]] = read_file
    ) -> None:
        """`read` returns the tombstones in a file. Raises OSError."""
        self._stores = [
            (home, tombstones, ForgottenMessages(path.removesuffix(FORGOTTEN)))
            for path, home in files.items()
            if (tombstones := read(path))
        ]
        self._until: dict[str, int | None] = {}

    def __bool__(self) -> bool:
        return bool(self._stores)

    def holds(self, entry: Entry, session_id: str) -> bool:
        """Check if an entry in a session's transcript repeats a forgotten message.

        It does if its record names a forgotten session as its own, or if it is one of the forgotten
        messages."""
        if not self._stores:
            return False
        if entry.origin not in ("", session_id):
            until = self._until_of(entry.origin)
            if until is not None and (entry.is_copy or (entry.timestamp or 0.0) * 1000 <= until):
                return True
        return self._has_marks(entry)

    def has_title(self, title: str) -> bool:
        """Check if a forgotten session had this title."""
        from ..transcripts.marks import title_mark

        return any([messages.has(title_mark(title)) for _, _, messages in self._stores if messages])

    def _has_marks(self, entry: Entry) -> bool:
        from ..transcripts.marks import marks_of

        stores = [(home, messages) for home, _, messages in self._stores if messages]
        return any(
            [messages.has(mark) for home, messages in stores for mark in marks_of(home, entry)]
        )

    def _until_of(self, session_id: str) -> int | None:
        if session_id not in self._until:
            times = [
                forgotten_until(tombstones, home, session_id, "")
                for home, tombstones, _ in self._stores
            ]
            self._until[session_id] = max(
                [time for time in times if time is not None], default=None
            )
        return self._until[session_id]


def _hash(text: str) -> str:
    from hashlib import blake2b

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
