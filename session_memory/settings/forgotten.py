"""The record of forgotten sessions, which must not come back: sessions up to a time, in `<database>.forgotten.jsonl`
beside the store.

Only hashes of ids and directories are kept, which nobody can read. The file outlives the database. A prompt loads this
if there is such a file."""

from __future__ import annotations

from ..system.files import read_whole, status_at, write_atomically
from ..system.json import decode, encode
from .homes import FORGETTING, FORGOTTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The group, hashes of a session and of a directory ('' for any), and up to when all of it is forgotten, in milliseconds
# since the epoch.
Tombstone = tuple[str, str, str, int]
_KEYS = ("home", "session", "directory", "before")


def session_tombstone(home: str, session_id: str, before: int) -> Tombstone:
    return home, _hash(session_id), "", before


def directory_tombstone(home: str, directory: str, before: int) -> Tombstone:
    """Return that of all sessions which were started in a directory, or below it."""
    return home, "", _hash(directory.rstrip("/")), before


def path_of(database: str) -> str:
    """Return the path of the file that says what was forgotten of a database."""
    return database + FORGOTTEN


def is_unfinished(database: str) -> bool:
    """Check if steps of a forget are left: see upkeep.forget_journal."""
    return status_at(database + FORGETTING, follow_symlinks=False) is not None


def read(database: str) -> list[Tombstone]:
    """Return all that was forgotten of a database. Raises OSError."""
    return read_file(path_of(database))


def read_file(path: str) -> list[Tombstone]:
    """Return all that such a file says was forgotten; of a line that is damaged, nothing. Raises OSError."""
    try:
        content = read_whole(path)
    except FileNotFoundError:
        return []
    found = []
    for line in content.splitlines():
        try:
            value = decode(line.decode())
            home, session, directory, before = [value[key] for key in _KEYS]
            if all([isinstance(part, str) for part in (home, session, directory)]):
                found.append((home, session, directory, int(before)))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return found


def add(database: str, tombstones: Iterable[Tombstone]) -> None:
    """Note what is forgotten. Raises OSError."""
    lines = [encode(dict(zip(_KEYS, one))) for one in dict.fromkeys([*read(database), *tombstones])]
    write_atomically(path_of(database), ("\n".join(lines) + "\n").encode())


def forgotten_until(tombstones: Iterable[Tombstone], home: str, session_id: str, directory: str) -> int | None:
    """Return up to when a session started in `directory` was forgotten, in milliseconds; None for never."""
    own = [one for one in tombstones if one[0] == home]
    if not own:
        return None
    hashed = _hash(session_id)
    steps = directory.replace("\\", "/").rstrip("/").split("/") if directory else []
    above = {_hash("/".join(steps[: count + 1])) for count in range(len(steps))}
    return max([before for _, session, path, before in own if session == hashed or path in above], default=None)


def _hash(text: str) -> str:
    from hashlib import blake2b

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
