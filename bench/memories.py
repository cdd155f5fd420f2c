"""`python -m bench.memories`: the cost of storing a conversation's memories as memories grow.

A person's home has a number of memories from a quarter as many sessions: a third of them episodes,
the rest facts, decisions and so on about 40 projects. Single: the memories of one conversation,
including the index of prompts. Batch: a run over many conversations, measured for each of them, and
for the one refresh at the end. Processor time is measured, so other work on the machine counts
little. Limits: at most 1 s and 25 ms at 2,000.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import median

from session_memory.history.store.location import StoreLocation, find_location
from session_memory.history.store.refresh import open_store, refresh
from session_memory.history.store.values import Conversation, Filter
from session_memory.memory import pages
from session_memory.memory.format import EPISODE, KINDS, new_memory, render
from session_memory.memory.library import open_index
from session_memory.memory.memory_index import IndexedMemory, Origin
from session_memory.memory.strategy import Memory, MemoryResult
from session_memory.memory.writer import memory_writer
from tests.stored import Stored, talk

from .command import run
from .scratch import scratch_directory

SINGLES, BATCH = 5, 50
PROJECTS = 40
SINGLE_LIMIT, BATCH_LIMIT = 1.0, 0.025
WORDS = (
    "login",
    "token",
    "cache",
    "queue",
    "worker",
    "redis",
    "schema",
    "index",
    "deploy",
    "rollback",
    "staging",
    "retry",
    "timeout",
    "header",
    "cookie",
    "session",
    "migration",
    "column",
    "latency",
    "batch",
    "shard",
    "replica",
    "metric",
    "alert",
    "backup",
    "restore",
    "webhook",
    "payload",
    "parser",
    "router",
)


def main(sizes: str = "1000,2000", check: bool = False) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded at the last size."""
    single = each = 0.0
    for size in map(int, sizes.split(",")):
        with scratch_directory() as name:
            single, each, end = measured(name, size)
        cells = f"single {single:.3f} s, batch {each * 1000:.1f} ms each, its end {end:.3f} s"
        print(f"{size:6,} memories: {cells}", flush=True)
    return 1 if check and (single > SINGLE_LIMIT or each > BATCH_LIMIT) else 0


def measured(root: Path, size: int) -> tuple[float, float, float]:
    """Return the seconds of a single keep, of each one in a batch, and of the batch's end."""
    location, conversations = prepared(root, size)
    chance = Random(size)
    singles = []
    for _ in range(SINGLES):
        conversation = chance.choice(conversations)
        started = time.process_time()
        with memory_writer(location) as writer:
            writer(conversation, (), "extractive", _result(chance))
        singles.append(time.process_time() - started)
    with memory_writer(location) as writer:
        started = time.process_time()
        for _ in range(BATCH):
            writer(chance.choice(conversations), (), "extractive", _result(chance))
        kept = time.process_time()
    return median(singles), (kept - started) / BATCH, time.process_time() - kept


def prepared(root: Path, size: int) -> tuple[StoreLocation, list[Conversation]]:
    """A store with conversations, their memories on pages, and the index."""
    environ = {"HOME": str(root), "PATH": os.defpath}
    os.environ["HOME"] = str(root)
    location = find_location(None, environ)
    stored = Stored(Path(location.database))
    for number in range(size // 4):
        stored.add(
            *talk(f"topic {number}"),
            name=f"s{number}",
            at=1_760_000_000_000 + number * 3_600_000,
            ready=False,
        )
    stored.close()
    with closing(open_store(location)) as store:
        refresh(store, location, print)
        conversations = store.conversations(Filter(limit=size))
    by_page: dict[str, list[str]] = {}
    for memory in _memories(Random(size), conversations, size):
        by_page.setdefault(pages.path_for(memory), []).append(render(memory))
    directory = location.home.memories_dir
    for path, parts in by_page.items():
        page = pages.read(directory, path)
        pages.write(directory, page._replace(parts=[*page.parts, *parts]))
    past = time.time() - 10
    for file in Path(directory).rglob("*.md"):
        os.utime(file, (past, past))
    with open_index(location, print):
        pass
    return location, conversations


def _memories(
    chance: Random, conversations: list[Conversation], size: int
) -> Iterator[IndexedMemory]:
    for number in range(size):
        conversation = conversations[number % len(conversations)]
        origin = Origin(
            conversation.last_message_at,
            conversation.session_id,
            conversation.id,
            "extractive",
            3,
            f"/srv/p{number % PROJECTS}",
        )
        kind = EPISODE if number % 3 == 0 else chance.choice(KINDS)
        made = _memory(chance, kind)
        yield new_memory(
            made.kind, made.title, made.text, made.subject, made.quote, origin, is_untrusted=False
        )


def _memory(chance: Random, kind: str) -> Memory:
    said = " ".join(
        [
            *chance.choices(WORDS, k=12),
            str(chance.randrange(10**6)),
            f"src/m{chance.randrange(900)}.py",
        ]
    )
    return Memory(
        kind,
        said,
        " ".join(chance.choices(WORDS, k=40)),
        f"p{chance.randrange(PROJECTS)}",
        quote=said[:60],
    )


def _result(chance: Random) -> MemoryResult:
    return MemoryResult(
        tuple([_memory(chance, kind) for kind in (EPISODE, *chance.choices(KINDS, k=3))])
    )


if __name__ == "__main__":
    run(main)
