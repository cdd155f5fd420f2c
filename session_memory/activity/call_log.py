"""What the agents of a session were told with tool calls: a file beside its cursors, to which lines are added.

A line is a JSON list: the agent ('' for the session's own, else a sub-agent), the key of a collision, a time, and
whether it was told: `["", "edited discord /srv/app.py", 1790000000.5, true]`. All that another session did until then
is settled. It has a lock of its own, held while something is told, so that no call waits for a prompt.
"""

from __future__ import annotations

from ..system.files import lock, os, read_at, read_whole
from ..system.json import decode, encode
from .cursor_file import LOCK_WAIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    CallLine = tuple[str, str, float, bool]

EDITED, GIT = "edited", "git"
LOG_BYTES = 64 * 1024  # a file that is longer keeps the later half of its lines
_SUFFIX = ".calls"


def edited_key(session: str, path: str) -> str:
    """The key under which it is settled what a session edited there: that of the collision."""
    return f"{EDITED} {session} {path}"


def git_key(session: str, path: str) -> str:
    """The key under which it is settled what git commands of a session did to it."""
    return f"{GIT} {session} {path}"


def told_with_calls(cursor_file: str) -> dict[str, float]:
    """Until when the session's own agent was told of each collision, by its key."""
    return {key: time for agent, key, time, is_told in _lines(_read(_path(cursor_file))) if is_told and not agent}


class CallLog:
    """The file of one session. `settled` says until when the collisions of an `agent` are settled, by their keys."""

    def __init__(self, cursor_file: str, agent: str) -> None:
        self._path = _path(cursor_file)
        self._agent = agent
        self._descriptor: int | None = None
        self.settled = self._settled(_read(self._path))

    def acquire(self) -> None:
        """Takes the lock, and reads again what other calls have added, unless it is held. Raises LockedError,
        OSError."""
        if self._descriptor is not None:
            return
        self._descriptor = lock(self._path, LOCK_WAIT_SECONDS)
        self.settled = self._settled(read_at(self._descriptor, 0, os.fstat(self._descriptor).st_size))

    def add(self, lines: Iterable[tuple[str, float, bool]]) -> None:
        """Adds what was settled, and whether by telling it. To be called under the lock. Raises OSError."""
        added = b"".join([encode([self._agent, *line]).encode() + b"\n" for line in lines])
        descriptor = self._descriptor
        if descriptor is None or not added:
            return
        size = os.fstat(descriptor).st_size
        if size + len(added) > LOG_BYTES:
            kept = read_at(descriptor, size // 2, size).partition(b"\n")[2]
            os.ftruncate(descriptor, 0)
            added, size = kept + added, 0
        os.lseek(descriptor, size, 0)
        os.write(descriptor, added)

    def release(self) -> None:
        """Releases the lock, if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _settled(self, content: bytes) -> dict[str, float]:
        found: dict[str, float] = {}
        for agent, key, time, _ in _lines(content):
            if agent == self._agent:
                found[key] = max(time, found.get(key, 0.0))
        return found


def _path(cursor_file: str) -> str:
    return cursor_file.removesuffix(".json") + _SUFFIX


def _read(path: str) -> bytes:
    try:
        return read_whole(path)
    except OSError:
        return b""


def _lines(content: bytes) -> list[CallLine]:
    """The lines that are as they were written."""
    found: list[CallLine] = []
    for line in content.split(b"\n"):
        try:
            agent, key, time, is_told = decode(line.decode())
            found.append((str(agent), str(key), float(time), is_told is True))
        except (ValueError, TypeError):
            continue
    return found
