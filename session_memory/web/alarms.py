"""What failed and needs the person: a dead hook, a broken setting. It is looked for in a thread of its own, when a file
changed in which it may show, and now and then: a hook is tried for it, which takes a second."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError, described
from ..system.files import path_stamp

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_SECONDS = 600.0
LOOK_SECONDS = 1.0  # at the times of the files


class Alarm(NamedTuple):
    """Something that somebody has to mend: what it is about, what is wrong, what to do."""

    about: str
    text: str
    mend: str = ""


class Alarms:
    """What `find` found last, in `found`; `tell` is called where that is something else. `watched` returns the paths of
    the files in which it may show."""

    def __init__(
        self, find: Callable[[], list[Alarm]], watched: Callable[[], list[str]], tell: Callable[[], None]
    ) -> None:  # fmt: skip
        self.found: list[Alarm] = []
        self._find = find
        self._watched = watched
        self._tell = tell
        self._stop = threading.Event()

    def start(self) -> None:
        """Begins to look."""
        threading.Thread(target=self._run, name="alarms", daemon=True).start()

    def stop(self) -> None:
        """Looks no more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            paths: list[str] = []
            stamps: list[list[int]] = []
            try:
                paths = self._watched()
                stamps = [path_stamp(path) for path in paths]
                found = self._find()
            except (SessionMemoryError, OSError) as error:
                found = [Alarm("checks", described(error), "session-memory doctor tells more")]
            if found != self.found:
                self.found = found
                self._tell()
            until = time.monotonic() + EVERY_SECONDS
            while time.monotonic() < until and not self._stop.wait(LOOK_SECONDS):
                if stamps != [path_stamp(path) for path in paths]:
                    break
