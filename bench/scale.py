"""`python -m bench.scale`: the store's cost as transcripts grow: 0.1, 1 and 4 GB, and 20,000 files.

For each amount a store is made in a separate process. For the import and the many files, processor
time is measured, so other work on the machine counts little. A refresh is the work of a command
before it answers, with nothing new and with one megabyte appended to the largest file. Searches are
for two terms, drawn by their frequency in the texts. Limits: a megabyte takes at most 1.5 times as
long in the largest store as in the smallest, and a refresh with nothing new in 20,000 files at most
8 times a bare start of Python. `--files 0` leaves these out; `--directory DIR` has room for
transcripts and store.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, NamedTuple

from session_memory.history.store.location import find_location
from session_memory.history.store.refresh import open_store, refresh
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter

from .command import run
from .corpus import MEGABYTE, Texts
from .scratch import scratch_directory
from .search import words_and_common
from .sources import Source, generated, with_ids_of_its_own
from .stopwatch import peak_memory, seconds

# of the transcripts that are copied: 100 together
FILE_MEGABYTES = (1, 1, 2, 2, 3, 3, 4, 4, 6, 6, 8, 8, 12, 16, 24)
FILE_BYTES = 4096
QUERIES = 200
RUNS = 7
SEED = 7
IMPORT_LIMIT = 1.5
REFRESH_LIMIT = 8.0


class Cost(NamedTuple):
    """The cost of a store of some transcripts.

    Times are in seconds, a search's in milliseconds, sizes in bytes."""

    transcript_bytes: int
    files: int
    import_seconds: float
    processor_seconds: float
    peak_bytes: int
    refresh: float
    appended: float
    search_p50: float
    search_p95: float
    database_bytes: int
    text_bytes: int

    @property
    def megabytes(self) -> float:
        return self.transcript_bytes / 1e6


HEADINGS = (
    "transcripts",
    "import",
    "per MB",
    "nothing new",
    "1 MB appended",
    "search p50",
    "p95",
    "database",
    "of its text",
    "memory",
)


def main(sizes: str = "100,1000,4000", files: int = 20_000, directory: Path | None = None) -> None:
    with scratch_directory(directory) as name:
        source = generated(SEED)
        megabyte = source(name / "megabyte", MEGABYTE, time.time())
        copies = copied_transcripts(source, name)
        home = name / "home"
        costs = []
        print("| " + " | ".join(HEADINGS) + " |\n|" + "---|" * len(HEADINGS), flush=True)
        for size in sorted(map(int, sizes.split(","))):
            fill(home, size, copies)
            costs.append(measured(home, megabyte))
            print("| " + " | ".join(cells(costs[-1])) + " |", flush=True)
        first, last = costs[0], costs[-1]
        times = per_megabyte(last) / per_megabyte(first)
        print(
            f"\nA megabyte in the largest store: {times:.2f} x of one in the smallest (limit "
            f"{IMPORT_LIMIT})"
        )
        if files:
            print(many_files(source, name / "many", files))


def copied_transcripts(source: Source, root: Path) -> Iterator[bytes]:
    """Yield invented transcripts, 100 MB of them, then endless copies with their own ids.

    Inventing more would take long."""
    originals = []
    for size in FILE_MEGABYTES:
        originals.append(source(root / "originals", size * MEGABYTE, time.time() - 3600))
        yield originals[-1].read_bytes()
    for number, path in enumerate(cycle(originals)):
        yield with_ids_of_its_own(path.read_bytes(), number)


def fill(home: Path, megabytes: int, transcripts: Iterator[bytes]) -> None:
    """Add transcripts to a home until it has this many megabytes."""
    projects = home / ".claude" / "projects"
    known = [path.stat().st_size for path in projects.rglob("*.jsonl")]
    total, number = sum(known), len(known)
    while total < megabytes * 1_000_000:
        content = next(transcripts)
        _write(home, number, content)
        total, number = total + len(content), number + 1
    os.sync()  # else whoever syncs first waits for all of it


def _write(home: Path, number: int, content: bytes) -> None:
    """Write a transcript last changed an hour ago, because a recent one would be checked again."""
    folder = home / ".claude" / "projects" / f"-home-dev-{number % 20}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:08x}-0000-4000-a000-000000000000.jsonl"
    path.write_bytes(content)
    then = time.time() - 3600 - number / 1000
    os.utime(path, (then, then))


def measured(home: Path, megabyte: Path) -> Cost:
    """Measure a new store of the transcripts in `home`, in separate processes.

    `megabyte` is appended."""
    shutil.rmtree(home / ".session-memory", ignore_errors=True)
    return Cost(*_alone("import_everything", home), *_alone("ask", home, megabyte))


def _alone(function: str, *arguments: Path) -> list[Any]:
    """What a function of this module returns in a process of its own."""
    script = (
        f"import json, sys; from bench import scale; "
        f"print(json.dumps(scale.{function}(*sys.argv[1:])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], check=True, stdout=subprocess.PIPE
    )
    return list(json.loads(done.stdout))


def import_everything(home: str) -> tuple[float, ...]:
    """The first fields of Cost."""
    location = find_location(None, {"HOME": home})
    sizes = [
        file.size
        for directory in location.watched
        if directory.is_expected()
        for file in directory.files()
    ]
    began, of_processor = time.perf_counter(), processor_seconds()
    store = open_store(location)
    refresh(store, location, fail, workers=os.cpu_count() or 1)
    took, of_processor = time.perf_counter() - began, processor_seconds() - of_processor
    store.close()
    return sum(sizes), len(sizes), took, of_processor, peak_memory()


def ask(home: str, megabyte: str) -> tuple[float, ...]:
    """The other fields of Cost."""
    location = find_location(None, {"HOME": home})
    store = open_store(location)
    store.connection.execute("PRAGMA wal_checkpoint(truncate)")
    counts = store.counts()
    refresh(store, location, fail)
    nothing_new = median([seconds(lambda: refresh(store, location, fail)) for _ in range(RUNS)])
    files = [
        file
        for directory in location.watched
        if directory.is_expected()
        for file in directory.files()
    ]
    largest = max(files, key=lambda file: file.size)
    content = Path(megabyte).read_bytes()
    appended = []
    for number in range(RUNS):
        with open(largest.path, "ab") as file:
            file.write(with_ids_of_its_own(content, number))
        appended.append(seconds(lambda: refresh(store, location, fail)))
    os.truncate(largest.path, largest.size)  # for the next size
    random = Random(SEED)
    words, _ = words_and_common(Texts(SEED), random)
    times = [_search_milliseconds(store, " ".join(random.sample(words, 2))) for _ in range(QUERIES)]
    store.close()
    cuts = quantiles(times, n=20)
    return (
        nothing_new,
        median(appended),
        median(times),
        cuts[18],
        counts.database_bytes,
        counts.text_bytes,
    )


def _search_milliseconds(store: SqliteStore, query: str) -> float:
    wanted = Filter(limit=10)
    return median([seconds(lambda: store.search(query, wanted)) for _ in range(3)]) * 1000


def many_files(source: Source, home: Path, number: int) -> str:
    """Return the time of a refresh with nothing new in many small files.

    The unit is a bare start of Python."""
    originals = [
        source(home / "originals", FILE_BYTES, time.time()).read_bytes() for _ in range(20)
    ]
    for at, content in zip(range(number), cycle(originals)):
        _write(home, at, with_ids_of_its_own(content, at))
    location = find_location(None, {"HOME": str(home)})
    store = open_store(location)
    refresh(store, location, fail)
    own_seconds, bare = [], []
    for _ in range(3 * RUNS):
        began = processor_seconds()
        refresh(store, location, fail)
        refreshed = processor_seconds()
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
        own_seconds.append(refreshed - began)
        bare.append(processor_seconds() - refreshed)
    store.close()
    times = median(own_seconds) / median(bare)
    return (
        f"Nothing new in {number:,} files: {median(own_seconds) * 1000:.0f} ms of the processor, "
        f"{times:.1f} x a bare start "
        f"(limit {REFRESH_LIMIT})"
    )


def per_megabyte(cost: Cost) -> float:
    """Processor seconds for the import of a megabyte."""
    return cost.processor_seconds / cost.megabytes


def cells(cost: Cost) -> list[str]:
    return [
        f"{cost.megabytes:,.0f} MB, {cost.files:,} files",
        f"{cost.import_seconds:.1f} s, {cost.megabytes / cost.import_seconds:.0f} MB/s",
        f"{per_megabyte(cost) * 1000:.1f} ms",
        f"{cost.refresh * 1000:.1f} ms",
        f"{cost.appended * 1000:.0f} ms",
        f"{cost.search_p50:.1f} ms",
        f"{cost.search_p95:.1f} ms",
        f"{cost.database_bytes / 1e6:,.0f} MB",
        f"{cost.database_bytes / cost.text_bytes:.2f} x",
        f"{cost.peak_bytes / MEGABYTE:.0f} MB",
    ]


def processor_seconds() -> float:
    """Return the processor time of this process and of its finished children, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def fail(text: str) -> None:
    """Fail instead of printing a note: an incomplete refresh is not a measurement."""
    raise AssertionError(text)


if __name__ == "__main__":
    run(main)
