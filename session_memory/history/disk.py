"""The disk space of the data, by kind, and the person's limit for all of it."""

import os
from collections.abc import Iterator

from ..common.system.terminal import byte_size
from ..sessions.settings.homes import private_beside
from .copies.pack import pack_path
from .store.location import StoreLocation

KEPT = "kept transcripts"


class Sizes:
    """The sizes of files, each taken once; `known` has some in bytes, by path."""

    def __init__(self, known: dict[str, int] | None = None) -> None:
        self._known = known or {}

    def below(self, root: str) -> Iterator[tuple[str, int]]:
        """Yield the path and size of each file below the directory `root`."""
        known = self._known
        for directory, _, names in os.walk(root):
            for name in names:
                path = f"{directory}/{name}"
                size = known.get(path)
                if size is None:
                    try:
                        size = known[path] = os.lstat(path).st_size
                    except OSError:  # deleted meanwhile
                        continue
                yield path, size

    def usage(self, location: StoreLocation) -> dict[str, int]:
        """Return the bytes on the disk by kind of data.

        Copies count for sessions that a runtime keeps in other forms."""
        home = location.home
        kinds = {
            pack_path(location.database): KEPT,
            os.path.dirname(location.database): "database",
            home.conversations_dir: "archives",
            private_beside(home.conversations_dir): "archives",
            home.memories_dir: "memories",
            private_beside(home.memories_dir): "memories",
            home.state_dir: "state",
            home.memory_dir: "copies",
        }
        usage = dict.fromkeys(kinds.values(), 0)
        for root in kinds:
            # otherwise it is counted with that one
            if not any(root.startswith(f"{other}/") for other in kinds):
                for path, size in self.below(root):
                    usage[
                        next(kind for start, kind in kinds.items() if path.startswith(start))
                    ] += size
        return usage


def size_line(usage: dict[str, int], limit: int) -> str:
    """Return the sizes of all kinds, and of everything together."""
    kinds = ", ".join(f"{kind} {byte_size(size)}" for kind, size in usage.items() if size)
    allowed = f" of {byte_size(limit)}" if limit else ""
    return f"{byte_size(sum(usage.values()))}{allowed}" + (f": {kinds}" if kinds else "")


def over_limit(usage: dict[str, int], limit: int) -> str:
    """Return the problem if the data exceeds `limit` bytes; '' if it does not.

    A limit of 0 means none."""
    total = sum(usage.values())
    if not limit or total <= limit:
        return ""
    return (
        f"the data takes {byte_size(total - limit)} more than disk_bytes allows. Data that exists "
        f"only here is never deleted without asking. To delete some, session-memory forget "
        f"--before DATE lists it first; to allow more: session-memory config disk_bytes {2 * total}"
    )


def room_for_kept(location: StoreLocation, limit: int) -> int | None:
    """Return the bytes that kept transcripts may take besides all other data; None for no limit."""
    if not limit:
        return None
    usage = Sizes().usage(location)
    return max(0, limit - sum(usage.values()) + usage[KEPT])
