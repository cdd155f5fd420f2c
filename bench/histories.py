"""Transcripts with every kind of change to files, and the messages in them."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.records import stamp

SESSIONS = 8
LONGEST = 40 * 1024
START = 1_780_000_000.0


class Histories:
    """A few sessions in a project below `root`; each `step` changes one of them.

    `said` has everything that each session's transcript has ever contained. Before something is
    removed from a file, `settle` is called, so a reader can have read it. Without `settle`, files
    only grow."""

    def __init__(
        self, root: Path, chance: random.Random, settle: Callable[[], object] | None = None
    ) -> None:
        self.said: dict[str, list[str]] = {}
        self._directory = root / "-srv-agent"
        self._directory.mkdir(parents=True)
        self._chance = chance
        self._settle = settle
        self._number = 0
        self._records: dict[str, list[bytes]] = {}

    def step(self) -> None:
        """Make one change: usually append, rarely truncate, replace or delete a file."""
        if len(self._records) < SESSIONS:
            session = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
            self._records[session], self.said[session] = [], []
        else:
            session = self._chance.choice(list(self._records))
        path = self._directory / f"{session}.jsonl"
        kind = self._chance.random()
        if self._settle is None:
            self._append(session, path)
        elif path.exists() and path.stat().st_size > LONGEST:
            self._settle()
            self._truncate(session, path)
        elif kind < 0.85 or not path.exists():
            self._append(session, path)
        elif kind < 0.90:
            self._append_torn(session, path)
        elif kind < 0.95:
            self._settle()
            self._replace(session, path)
        else:
            self._settle()
            path.unlink()
            self._records[session] = []

    def _new(self, session: str) -> bytes:
        self._number += 1
        text = f"{self._number} " + "lorem ipsum " * self._chance.randrange(20)
        when = stamp(START + self._number * self._chance.choice((1, 900)))
        identity = str(uuid.UUID(int=self._number << 80, version=4))
        role = self._chance.choice(("user", "assistant"))
        message = {"role": role, "content": [{"type": "text", "text": text.strip()}]}
        record = {
            "parentUuid": None,
            "sessionId": session,
            "type": role,
            "uuid": identity,
            "timestamp": when,
        }
        self.said[session].append(text.strip())
        return json.dumps({**record, "cwd": "/srv/agent", "message": message}).encode() + b"\n"

    def _append(self, session: str, path: Path) -> None:
        with path.open("ab") as file:
            for _ in range(self._chance.randrange(1, 8)):
                line = self._new(session)
                self._records[session].append(line)
                file.write(line)

    def _append_torn(self, session: str, path: Path) -> None:
        """Append a line in two writes, so a reader in between sees half of it."""
        line = self._new(session)
        cut = self._chance.randrange(1, len(line))
        for part in (line[:cut], line[cut:]):
            with path.open("ab") as file:
                file.write(part)
        self._records[session].append(line)

    def _truncate(self, session: str, path: Path) -> None:
        del self._records[session][len(self._records[session]) // 4 :]
        path.write_bytes(b"".join(self._records[session]))

    def _replace(self, session: str, path: Path) -> None:
        """Rewrite the file beside it, without a part of its content, and with something new."""
        kept = [line for line in self._records[session] if self._chance.random() < 0.8]
        self._records[session] = [*kept, self._new(session)]
        other = path.with_suffix(".tmp")
        other.write_bytes(b"".join(self._records[session]))
        os.replace(other, path)
