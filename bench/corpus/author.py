"""The author of a transcript: the ids, times and texts of one session, drawn from one seed."""

from __future__ import annotations

import time
from base64 import b32encode
from random import Random
from typing import Any

from .texts import Texts

Record = dict[str, Any]

SECONDS_PER_KILOBYTE = 3.6  # a megabyte an hour
ACTIVE_HOURS_PER_BREAK = 3


class Clock:
    """A clock for a transcript that is written steadily, with a few breaks of hours.

    All of it is written by `end` (seconds since 1970); its beginning follows from its size in
    bytes."""

    def __init__(self, random: Random, size: float, end: float) -> None:
        self.end = end
        self.active_seconds = size / 1024 * SECONDS_PER_KILOBYTE
        number_of_breaks = int(
            self.active_seconds / 3600 / ACTIVE_HOURS_PER_BREAK + random.random()
        )
        self.breaks = [
            (random.random(), random.uniform(1, 14) * 3600) for _ in range(number_of_breaks)
        ]

    def at(self, share: float) -> float:
        """Seconds since the epoch when `share` (0 to 1) was written."""
        share = min(share, 1)
        ahead = sum([seconds for position, seconds in self.breaks if position > share])
        return self.end - self.active_seconds * (1 - share) - ahead


class Author:
    """One session that is being written.

    The writer of its lines counts their bytes in `written`; its records keep `parent_id`."""

    def __init__(self, texts: Texts, seed: str, project: str, size: float, end: float) -> None:
        self.texts = texts
        self.random = Random(f"session-{seed}")
        self.session_id = self.uuid()
        self.cwd = f"/home/dev/{project}"
        self.size = size
        self.written = 0
        self.parent_id: str | None = None
        self.is_subagent = False
        self.turn_id = ""
        self._clock = Clock(self.random, size, end)
        self._language = "chinese" if self.chance(0.08) else "prose"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def token(self, prefix: str) -> str:
        """An id as the API makes them: `msg_01...`, `toolu_01...`."""
        return prefix + b32encode(self.random.randbytes(15)).decode()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock.at(self.written / self.size)

    def timestamp(self) -> str:
        now = self.now()
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03}Z"

    def path(self) -> str:
        return f"{self.cwd}/{self.random.choice(self.texts.files)}"

    def words(self, count: int) -> str:
        return self.texts.words(count, self.random)

    def text(self, kind: str, length: int) -> str:
        """About `length` characters of a kind that `texts` knows."""
        return self.texts.cut(kind, length, self.random)

    def prose(self, length: int) -> str:
        """Return about `length` characters in the session's language, in paragraphs if long."""
        return self.text(self._language, length).replace("\n", "\n\n" if length > 600 else " ")

    def spread(self, median: float, sigma: float, most: int) -> int:
        """Return a random length, usually near the median and sometimes a multiple of it."""
        return int(min(most, self.random.lognormvariate(0, sigma) * median))
