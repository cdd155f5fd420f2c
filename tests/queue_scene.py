"""A store with conversations, the queue that works them off, and a strategy that does as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stored import Stored

from session_memory.memories.budget import TokenBudget
from session_memory.memories.queue import PartResult, Queue
from session_memory.memories.strategy import Memory, MemoryResult
from session_memory.store.sqlite.queue import StoredQueue
from session_memory.store.values import Conversation, StoredEntry

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


class Machine:
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
        self, conversation: Conversation, entries: Sequence[StoredEntry], strategy: str, result: MemoryResult
    ) -> list[str]:
        if self.keep_fails:
            raise self.keep_fails.pop(0)
        titles = tuple(memory.title for memory in result.memories)
        self.kept.append((conversation.id, strategy, conversation.last_message_at, titles))
        return [f"memory-{len(self.kept)}"]

    def queue(self, **options: Any) -> Queue:
        budget = options.pop("budget", None) or TokenBudget(self.work.accounts, 1000, 1000, self.now)
        return Queue(self.stored.path, self.keep, budget, self.work, self.now, **options)

    def run(self, *strategies: Scripted, ids: tuple[str, ...] = (), **options: Any) -> list[PartResult]:
        chosen = {key: options.pop(key) for key in ("limit", "statuses", "stop") if key in options}
        all_ids = ids or tuple(strategy.id for strategy in strategies)
        return list(self.queue(**options).work_off(strategies, all_ids, **chosen))
