"""A directory of memories with their conversations, and a store with its queue."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stored import Stored

from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.values import Conversation, StoredEntry
from session_memory.memory import library, prompt_memories
from session_memory.memory.memory_index import IndexedMemory, MemoryFilter, MemoryIndex
from session_memory.memory.queue import PartResult, Queue
from session_memory.memory.strategy import KnownMemory, Memory, MemoryResult
from session_memory.memory.token_budget import TokenBudget
from session_memory.memory.writer import MemoryWriter

FEBRUARY = 1771684325_000  # 2026-02-21 14:32:05 UTC
DAY = 24 * 3600 * 1000


def conversation(number: int = 12, at: int = FEBRUARY, **values: Any) -> Conversation:
    given = {
        "session_id": "d58a79a7-1111-4222-8333-abcdefabcdef",
        "home": "",
        "title": "Auth",
        **values,
    }
    return Conversation(
        number,
        given["session_id"],
        "p/x.jsonl",
        given["home"],
        "agent-sdk",
        "/srv/app",
        given["title"],
        at,
        at,
        6,
        "ready",
        "",
    )


class MemoryDirectory:
    """A directory of memories and its index."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "memories"
        self.database = str(root / "store" / "memory.db")
        self.index = MemoryIndex(self.database)
        self.untrusted: set[str] = set()
        self._root = root

    def writer(self) -> MemoryWriter:
        """The writer of a run."""
        directory = self._root
        return MemoryWriter(
            self.database,
            lambda home: str(directory / home / "memories"),
            lambda one: one.session_id in self.untrusted,
        )

    def known(self, of: Conversation, text: str, limit: int) -> list[KnownMemory]:
        with self.writer() as writer:
            return writer.known(of, text, limit)

    def close(self) -> None:
        self.index.close()

    def keep(
        self, *memories: Memory, of: Conversation | None = None, strategy: str = "summary"
    ) -> list[str]:
        with self.writer() as writer:
            return writer(of or conversation(), (), strategy, MemoryResult(memories))

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
        return {
            str(path.relative_to(self.directory)): path.read_text()
            for path in self.directory.rglob("*.md")
        }


def told_with_prompt(
    directory: str | Path,
    prompt: str,
    characters: int = 500,
    session: prompt_memories.PromptedSession | None = None,
) -> str:
    """What a prompt is told of the memories in a directory."""
    return prompt_memories.relevant(
        str(directory), prompt, characters, session or prompt_memories.PromptedSession()
    ).text


def fact(text: str, subject: str = "auth", **values: Any) -> Memory:
    return Memory("fact", text, "", subject, **values)


EXPIRY = fact("The JWT expiry of the login service is 3600 seconds", quote="expiry set to 3600")


MINUTE = 60_000


class Scripted:
    """A strategy that does what it is told, one after the other, and then makes an episode of everything."""

    def __init__(self, id: str = "scripted", *script: object) -> None:
        self.id = id
        self.script = list(script)
        self.seen: list[tuple[int, list[str]]] = []
        self.is_willing = True

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        return self.is_willing

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        self.seen.append((conversation.id, [entry.text for entry in entries]))
        step: Any = self.script.pop(0) if self.script else None
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step()
        elif step is not None:
            return step
        return MemoryResult((Memory("episode", f"about {conversation.id}", entries[0].text),))


class QueueScene:
    """A store, a clock that stands still, and what was kept."""

    def __init__(self, path: Path) -> None:
        self.stored = Stored(path)
        self.kept: list[tuple[int, str, int | None, tuple[str, ...]]] = []
        self.keep_fails: list[Exception] = []
        self.work = StoredQueue(self.stored.path)
        self.later = 0

    def close(self) -> None:
        self.work.close()
        self.stored.close()

    def now(self) -> int:
        return self.stored.now + self.later

    def keep(
        self,
        conversation: Conversation,
        entries: Sequence[StoredEntry],
        strategy: str,
        result: MemoryResult,
    ) -> list[str]:
        if self.keep_fails:
            raise self.keep_fails.pop(0)
        titles = tuple(memory.title for memory in result.memories)
        self.kept.append((conversation.id, strategy, conversation.last_message_at, titles))
        return [f"memory-{len(self.kept)}"]

    def queue(self, **options: Any) -> Queue:
        budget = options.pop("budget", None) or TokenBudget(
            self.work.accounts, 1000, 1000, self.now
        )
        return Queue(self.keep, budget, self.work, self.now, **options)

    def run(
        self, *strategies: Scripted, ids: tuple[str, ...] = (), **options: Any
    ) -> list[PartResult]:
        chosen = {key: options.pop(key) for key in ("limit", "statuses", "stop") if key in options}
        all_ids = ids or tuple(strategy.id for strategy in strategies)
        return list(self.queue(**options).work_off(strategies, all_ids, **chosen))
