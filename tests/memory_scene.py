"""A directory of memories, and conversations that they come from."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from session_memory.memories import library
from session_memory.memories.strategy import Memory, MemoryResult
from session_memory.memories.writer import MemoryWriter
from session_memory.store.sqlite.memory_index import IndexedMemory, MemoryFilter, MemoryIndex
from session_memory.store.values import Conversation

FEBRUARY = 1771684325_000  # 2026-02-21 14:32:05 UTC
DAY = 24 * 3600 * 1000


def conversation(number: int = 12, at: int = FEBRUARY, **values: Any) -> Conversation:
    given = {"session_id": "d58a79a7-1111-4222-8333-abcdefabcdef", "home": "", "title": "Auth", **values}
    return Conversation(
        number, given["session_id"], "p/x.jsonl", given["home"], "agent-sdk", "/srv/app", given["title"], at, at, 6,
        "ready", "",
    )  # fmt: skip


class Desk:
    """A directory of memories and its index."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "memories"
        self.database = str(root / "store" / "memory.db")
        self.index = MemoryIndex(self.database)
        self.untrusted: set[str] = set()
        self.keeper = MemoryWriter(
            self.database, lambda home: str(root / home / "memories"), lambda one: one.session_id in self.untrusted
        )

    def close(self) -> None:
        self.index.close()

    def keep(self, *memories: Memory, of: Conversation | None = None, strategy: str = "summary") -> list[str]:
        return self.keeper(of or conversation(), (), strategy, MemoryResult(memories))

    def library(self, home: str = "") -> library.Library:
        return library.Library(str(self.directory), self.index, home)

    def refresh(self) -> None:
        """As any command does that reads memories, some time after the last change."""
        self.settle()
        self.library().refresh()

    def settle(self) -> None:
        """Makes every page and folder look as if it had been left alone for a while."""
        for path in [self.directory, *self.directory.rglob("*")]:
            now = time.time_ns()
            if now - path.stat().st_mtime_ns < 3_000_000_000:
                os.utime(path, ns=(now, now - 3_000_000_000))

    def page(self, path: str) -> Path:
        return self.directory / path

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.page(path).read_text()
        assert old in text
        self.page(path).write_text(text.replace(old, new))

    def all(self, **wanted: Any) -> list[IndexedMemory]:
        return self.index.memories(MemoryFilter(**{"with_superseded": True, **wanted}))

    def found(self, query: str, **wanted: Any) -> list[str]:
        return [memory.title for memory in self.index.search(query, MemoryFilter(**wanted))]

    def content(self) -> dict[str, str]:
        return {str(path.relative_to(self.directory)): path.read_text() for path in self.directory.rglob("*.md")}


def fact(text: str, subject: str = "auth", **values: Any) -> Memory:
    return Memory("fact", text, "", subject, **values)


EXPIRY = fact("The JWT expiry of the login service is 3600 seconds", quote="expiry set to 3600")
