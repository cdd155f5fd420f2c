"""What failed and needs the person: a dead hook, a broken setting. It is looked for in a thread of its own, now and
then: a hook is tried for it, which takes a second."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError, described

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_SECONDS = 600.0


class Alarm(NamedTuple):
    """Something that somebody has to mend: what it is about, what is wrong, what to do."""

    about: str
    text: str
    mend: str = ""


class Alarms:
    """What `find` found last, in `found`; `tell` is called where that is something else."""

    def __init__(self, find: Callable[[], list[Alarm]], tell: Callable[[], None]) -> None:
        self.found: list[Alarm] = []
        self._find = find
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
            try:
                found = self._find()
            except (SessionMemoryError, OSError) as error:
                found = [Alarm("checks", described(error), "session-memory doctor tells more")]
            if found != self.found:
                self.found = found
                self._tell()
            self._stop.wait(EVERY_SECONDS)
