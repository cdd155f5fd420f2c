"""Failures that need the person, such as a dead hook or a broken setting. A thread checks when a relevant file changed,
and periodically: it runs a hook, which takes a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ..errors import SessionMemoryError, described
from ..system.files import path_stamp

EVERY_SECONDS = 600.0
LOOK_SECONDS = 1.0  # between two looks at the files' times


class Alarm(NamedTuple):
    """A problem for the user to fix: its subject, the error, the fix."""

    about: str
    text: str
    mend: str = ""


class Alarms:
    """The last result of `find`, in `found`; `tell` is called when it changes. `watched` returns the paths of the
    relevant files."""

    def __init__(
        self, find: Callable[[], list[Alarm]], watched: Callable[[], list[str]], tell: Callable[[], None]
    ) -> None:  # fmt: skip
        self.found: list[Alarm] = []
        self._find = find
        self._watched = watched
        self._tell = tell
        self._stop = threading.Event()

    def start(self) -> None:
        """Start checking."""
        threading.Thread(target=self._run, name="alarms", daemon=True).start()

    def stop(self) -> None:
        """Stop checking."""
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
