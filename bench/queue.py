"""`python -m bench.queue`: kills processes that process conversations, and checks the result.

They are killed at random moments. Each process is a fork of this one, killed with SIGKILL within a
few milliseconds of its work. At the end every conversation must be archived, stored exactly once
with its first recorded result, and never processed again after that."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from session_memory.common.system.files import write_atomically
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.sqlite.queue_database import QueueDatabase
from session_memory.history.store.values import Filter
from session_memory.memory.queue import Queue
from session_memory.memory.strategy import Memory, MemoryResult, Usage
from session_memory.memory.token_budget import TokenBudget
from tests.stored import Stored, talk

from .command import run
from .kills import forked, is_killed
from .scratch import scratch_directory

if TYPE_CHECKING:
    from session_memory.history.store.values import Conversation, StoredEntry
    from session_memory.memory.strategy import ModelBudget

PAUSE_SECONDS = 0.01
CALL = Usage(70, 30, 0, "model")
LONGEST_LIFE_SECONDS = 0.06
PATIENCE_SECONDS = 120


class Outcome(NamedTuple):
    """The result of the kills: how many, conversations, calls to the strategy, and errors."""

    kills: int
    conversations: int
    calls: int
    problems: list[str]


class Slow:
    """A strategy that takes a moment, spends a little, and records each call in a file."""

    id = "slow"

    def __init__(self, log: str, budget: ModelBudget) -> None:
        self._log = log
        self._budget = budget

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        return True

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        token = f"{os.getpid()}-{time.monotonic_ns()}"
        with self._budget.call(CALL) as call:
            _append(
                self._log, {"event": "processed", "conversation": conversation.id, "token": token}
            )
            time.sleep(0.002)
            call.report(CALL)
        return MemoryResult((Memory("episode", token, entries[0].text),))


def main(kills: int = 2000, seed: int = 7) -> int:
    with scratch_directory() as name:
        outcome = play(name, kills, seed)
    print(
        f"{outcome.kills} kills, {outcome.conversations} conversations, {outcome.calls} calls to "
        f"the strategy"
    )
    print(
        "\n".join(outcome.problems)
        or "every conversation archived, kept once, never processed again afterwards"
    )
    return 1 if outcome.problems else 0


def play(root: Path, kills: int, seed: int) -> Outcome:
    """Kill so many processes while conversations are added; then let one finish."""
    chance = random.Random(seed)
    path, log, kept = str(root / "store.db"), str(root / "log.jsonl"), root / "kept"
    kept.mkdir()
    stored = Stored(Path(path))
    recorded: dict[int, str] = {}
    killed = 0
    work = partial(_work_off, path, log, str(kept))
    while killed < kills:
        if killed % 10 == 0:
            for _ in range(5):
                stored.add(*talk(f"topic {chance.random()}"))
        stored.close()  # a fork must not share an open database
        killed += is_killed(forked(work), chance.uniform(0, LONGEST_LIFE_SECONDS))
        stored.store = SqliteStore(path)
        recorded |= _recorded(stored.store)
    stored.close()
    os.waitpid(forked(work), 0)
    stored.store = SqliteStore(path)
    try:
        return _checked(stored.store, killed, log, kept, recorded)
    finally:
        stored.close()


def _work_off(path: str, log: str, kept: str) -> None:
    """Works off all that waits, as long as anything does."""

    def keep(
        conversation: Conversation,
        entries: Sequence[StoredEntry],
        strategy: str,
        result: MemoryResult,
    ) -> list[str]:
        token = result.memories[0].title
        _append(log, {"event": "kept", "conversation": conversation.id, "token": token})
        write_atomically(f"{kept}/{conversation.id}-{conversation.last_message_at}", token.encode())
        return [token]

    def now() -> int:
        return time.time_ns() // 1_000_000

    work = StoredQueue(path)
    budget = TokenBudget(work.accounts, 10**9, 10**6, now)
    queue = Queue(keep, budget, work, now, interruptions=sys.maxsize)
    strategy = Slow(log, budget)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if all(done.status != "stopped" for done in queue.work_off([strategy], (strategy.id,))):
            return
        time.sleep(PAUSE_SECONDS)


def _recorded(store: SqliteStore) -> dict[int, str]:
    """Return the recorded results that are not stored yet, by conversation.

    From now on, each conversation must keep this result."""
    with closing(QueueDatabase(store.path)) as queue:
        rows = queue.rows(
            "SELECT conversation_id, result FROM memory_work WHERE result IS NOT NULL"
        )
    return {number: json.loads(result)["memories"][0]["title"] for number, result in rows}


def _checked(
    store: SqliteStore, kills: int, log: str, kept: Path, recorded: dict[int, str]
) -> Outcome:
    conversations = store.conversations(Filter(limit=10**6))
    problems = [
        f"conversation {c.id} is {c.status}: {c.reason}"
        for c in conversations
        if c.status != "archived"
    ]
    events = [json.loads(line) for line in Path(log).read_text().splitlines()]
    # a kill may leave one of these
    whole = [file for file in kept.iterdir() if file.suffix != ".tmp"]
    files = {int(file.name.partition("-")[0]): file.read_text() for file in whole}
    tokens: dict[int, str] = {}
    for event in events:
        conversation, token = event["conversation"], event["token"]
        if event["event"] == "kept":
            if tokens.setdefault(conversation, token) != token:
                problems.append(
                    f"conversation {conversation} was kept as {tokens[conversation]} and as {token}"
                )
        elif conversation in tokens:
            problems.append(f"conversation {conversation} was processed again after it was kept")
    for conversation, token in recorded.items():
        if tokens.get(conversation) != token:
            problems.append(
                f"conversation {conversation}: recorded as {token}, kept as "
                f"{tokens.get(conversation)}"
            )
    if len(whole) != len(conversations) or files != tokens:
        problems.append(
            f"{len(files)} kept, {len(tokens)} told, {len(conversations)} conversations"
        )
    calls = [event for event in events if event["event"] == "processed"]
    spent = StoredQueue(store.path).accounts.of_day(time.time_ns() // 1_000_000)
    if spent < len(calls) * CALL.tokens:
        problems.append(f"{len(calls)} calls were made, but only {spent} tokens are accounted for")
    return Outcome(kills, len(conversations), len(calls), problems)


def _append(path: str, value: dict[str, object]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(value).encode() + b"\n")
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    run(main)
