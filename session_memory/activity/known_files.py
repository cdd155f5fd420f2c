"""The files that a session has in hand: paths without links, by which another session's are known that has others."""

from __future__ import annotations

from ..system.files import real_path, status_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .touches import Touch


def follow_links(touches: Iterable[Touch]) -> None:
    """Gives the touches paths through no linked directory, as git has them."""
    real: dict[str, str] = {}
    for touch in touches:
        directory, slash, name = touch.path.rpartition("/")
        if directory:
            if directory not in real:
                real[directory] = real_path(directory).rstrip("/")
            touch.path = real[directory] + slash + name


class KnownFiles:
    """`names` has the paths by the last part of each."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.names: dict[str, list[str]] = {}
        self._paths = set(paths)
        for path in self._paths:
            self.names.setdefault(path.rpartition("/")[2], []).append(path)

    def path_of(self, path: str) -> str:
        """The path that the session knows the file at `path` by: only those of the same name are looked at on disk."""
        if path not in self._paths:
            for known in self.names.get(path.rpartition("/")[2], ()):
                if _is_same(known, path):
                    return known
        return path


def _is_same(path: str, other: str) -> bool:
    one, two = status_at(path), status_at(other)
    return one is not None and two is not None and (one.st_ino, one.st_dev) == (two.st_ino, two.st_dev)
