"""What was forgotten and must not come back: sessions up to a time, in `<database>.forgotten.jsonl` beside the store.

Only hashes of ids and directories are kept, which nobody can read. The file outlives the database.
"""

from __future__ import annotations

import json
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ..system.files import read_whole, write_atomically
from ..system.json import decode

if TYPE_CHECKING:
    from collections.abc import Iterable


class ForgottenSession(NamedTuple):
    """What was said up to a time, in milliseconds since the epoch, in a session of a group, or in all that were started
    in a directory: `session` and `directory` are hashes, '' for any."""

    home: str
    session: str
    directory: str
    before: int


def session_tombstone(home: str, session_id: str, before: int) -> ForgottenSession:
    """That of a session."""
    return ForgottenSession(home, _hash(session_id), "", before)


def directory_tombstone(home: str, directory: str, before: int) -> ForgottenSession:
    """That of all sessions which were started in a directory, or below it."""
    return ForgottenSession(home, "", _hash(directory.rstrip("/")), before)


def path_of(database: str) -> str:
    """Where it is noted what was forgotten of a database."""
    return f"{database}.forgotten.jsonl"


def read(database: str) -> list[ForgottenSession]:
    """All that was forgotten; of a line that is damaged, nothing. Raises OSError."""
    try:
        content = read_whole(path_of(database))
    except FileNotFoundError:
        return []
    found = []
    for line in content.splitlines():
        try:
            value = decode(line.decode())
            one = ForgottenSession(value["home"], value["session"], value["directory"], int(value["before"]))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        if all(isinstance(part, str) for part in one[:3]):
            found.append(one)
    return found


def add(database: str, tombstones: Iterable[ForgottenSession]) -> None:
    """Notes what is forgotten. Raises OSError."""
    lines = [json.dumps(one._asdict()) for one in dict.fromkeys([*read(database), *tombstones])]
    write_atomically(path_of(database), ("\n".join(lines) + "\n").encode())


def forgotten_until(tombstones: Iterable[ForgottenSession], home: str, session_id: str, directory: str) -> int | None:
    """Up to which time, in milliseconds since the epoch, a session that was started in `directory` was forgotten; None
    if it was not."""
    session = _hash(session_id)
    above = {_hash(path) for path in _with_parents(directory)}
    own = [one for one in tombstones if one.home == home]
    return max([one.before for one in own if one.session == session or one.directory in above], default=None)


def now() -> int:
    """The time until which something is forgotten that is forgotten now."""
    return time.time_ns() // 1_000_000


def _with_parents(directory: str) -> list[str]:
    steps = directory.replace("\\", "/").rstrip("/").split("/")
    return ["/".join(steps[: count + 1]) for count in range(len(steps))] if directory else []


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
