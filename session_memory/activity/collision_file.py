"""What is kept between prompts of what a session has in hand: beside its cursors, read only where something changed."""

from __future__ import annotations

from ..system.files import read_whole, replace, write_private
from ..system.json import sealed, unsealed
from .collisions import InHand
from .cursor_file import collision_path
from .touches import Touch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_PATHS = 400
MOST_OPEN = 100
MOST_TOLD = 400
MOST_SUB_AGENTS = 400
_FIELDS = ("kind", "path", "time", "offset", "call_id", "is_command", "words", "transcript", "is_doubtful")


class CollisionFile:
    """The file of one session: what it has `in_hand`, which facts it was `told` (each with the time of its own touch
    then), of each other session the `open_touches` that had no result yet, and the `sub_agents`' transcripts with the
    offsets up to which they were read.

    It is written under the lock of the cursors, where something changed. What cannot be read is as if nothing had been
    touched.
    """

    def __init__(self, cursor_file: str, heard: float, path: str = "") -> None:
        """`path` is that of a file that does not count yet, to be read in its place."""
        self.cursor_file = cursor_file
        self.path = path or collision_path(cursor_file)
        self.in_hand = InHand(heard)
        self.told: dict[str, float] = {}
        self.open_touches: dict[str, list[Touch]] = {}
        self.sub_agents: dict[str, int] = {}
        self._kept = b""
        try:
            self._kept = read_whole(self.path)
            self._load(unsealed(self._kept))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass

    @property
    def is_changed(self) -> bool:
        """Whether something else is to be kept than what the file holds."""
        return self._content() != self._kept

    def prepare(self) -> None:
        """Writes what is kept beside the file."""
        write_private(self.path + ".tmp", self._content())

    def commit(self, path: str = "") -> None:
        """Puts what `prepare` wrote in place, or at another `path`."""
        replace(self.path + ".tmp", path or self.path)

    def _content(self) -> bytes:
        own = self.in_hand
        content = {
            "touched": [_as_list(one) for touches in list(own.touched.values())[-MOST_PATHS:] for one in touches],
            "told": dict(list(self.told.items())[-MOST_TOLD:]),
            "open": {key: [_as_list(one) for one in found[-MOST_OPEN:]] for key, found in self.open_touches.items()},
            "sub_agents": dict(list(self.sub_agents.items())[-MOST_SUB_AGENTS:]),
        }
        return sealed(content)

    def _load(self, content: dict[str, Any]) -> None:
        touched = [Touch(*fields) for fields in content["touched"]]
        told = {str(key): float(time) for key, time in content["told"].items()}
        found = {str(key): [Touch(*fields) for fields in touches] for key, touches in content["open"].items()}
        self.in_hand.take(touched)
        self.sub_agents = {str(path): int(offset) for path, offset in content["sub_agents"].items()}
        self.told, self.open_touches = told, found


def _as_list(touch: Touch) -> list[object]:
    return [getattr(touch, field) for field in _FIELDS]
