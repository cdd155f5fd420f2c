"""A store with conversations, entry by entry, without transcripts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from session_memory.history.store.ingest.values import (
    Batch,
    FileState,
    NewEntry,
    NewTool,
    ToolOutcome,
)
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter

ROOT = Path(__file__).resolve().parents[1]
HOUR = 3_600_000
START = 1_780_000_000_000
CWD = "/srv/agent"

_keys = itertools.count(1)


class Stored:
    """A store. Added conversations are finished: silent for longer than the gap, and ready."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = str(path)
        self.store = SqliteStore(self.path, **options)
        self.now = START

    def add(
        self,
        *said: object,
        name: str = "",
        home: str = "",
        at: int | None = None,
        ready: bool = True,
        cwd: str = CWD,
    ) -> int:
        """Add entries to the file `name`, a minute apart, from `at` on; return the conversation's
        id.

        A string is from the user or, after `> `, from the assistant. A tuple is a tool use: name,
        kind, argument, and the error if it failed."""
        key = f"{name or f'session-{next(_keys)}'}.jsonl"
        before = self.store.file_states(home).get(key)
        state = before or FileState(
            home, key, "/root", "claude-code", key.removesuffix(".jsonl"), cwd=cwd
        )
        when = START if at is None else at
        entries = []
        for number, one in enumerate(said):
            entries.append(_entry(one, state.offset + number, when + number * 60_000))
        last = entries[-1].timestamp
        after = state._replace(
            offset=state.offset + len(said), last_entry_timestamp=last, next_ordinal=0
        )
        self.store.write([Batch(before, after, entries, [])])
        self.now = max(self.now, (last or START) + 2 * HOUR)
        if ready:
            self.store.mark_ready(self.now)
        wanted = [
            c
            for c in self.store.conversations(Filter(limit=10_000))
            if c.source_file == key and c.home == home
        ]
        return max(wanted, key=lambda conversation: conversation.id).id

    def status(self, conversation_id: int) -> tuple[str, str]:
        """The status of a conversation and the reason for it."""
        found = self.store.conversation(conversation_id)
        assert found is not None
        return found.status, found.reason

    def close(self) -> None:
        self.store.close()


def talk(topic: str) -> tuple[str, ...]:
    """A conversation that is long enough."""
    return (
        f"Please look into {topic} for me",
        f"> I looked into {topic}.",
        "And what now?",
        "> Now it works.",
        "Thank you!",
    )


def _entry(one: object, offset: int, when: int) -> NewEntry:
    key = next(_keys)
    if isinstance(one, tuple):
        name, kind, argument, *error = one
        ended = ToolOutcome("error", error[0], 20, 1) if error else ToolOutcome("ok", "", 480, 12)
        tool = NewTool(key, key, name, kind, argument, ended)
        return NewEntry(key, 0, offset, "assistant", "", when, CWD, (tool,))
    assert isinstance(one, str)
    role = "assistant" if one.startswith("> ") else "user"
    return NewEntry(key, 0, offset, role, one.removeprefix("> "), when, CWD)
