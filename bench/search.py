"""`python -m bench.search`: how long a search takes.

Inside a process: over a store of a million invented entries, written with the store's own `write`.
Terms are drawn by their frequency in the texts, without stop words, so common ones are queried
most; a *common term* is in at least one of 200 entries. Each query is run three times, and the
median counts, because other work on the machine is not the search.

In a fresh process: `session-memory search` for two terms, drawn in the same way, in the store of a
gigabyte of invented transcripts. It is compared with a bare interpreter start, and with ripgrep
(`grep -r` if it is missing), which prints the lines of the files with either term. Printing them is
most of its work, so another row has the time just to count them. `--megabytes 0` leaves these out.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median, quantiles

from session_memory.history.search.postings import WHOLE
from session_memory.history.search.query import STOP_WORDS
from session_memory.history.search.search import search
from session_memory.history.store.ingest.values import Batch, FileState, NewEntry
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.search_index import KnownTables, SqliteSearchIndex
from session_memory.history.store.values import Filter

from .command import run
from .corpus import Texts
from .report import Row, as_table
from .scratch import scratch_directory
from .sources import generated
from .stopwatch import Command, CommandError, Stopwatch, installed

SEED = 7
ENTRIES_A_FILE = 100
GAP_EVERY = 25  # entries, after which a conversation ends
COMMON_SHARE = 1 / 200
RUNS_OF_A_QUERY = 3
CUT_QUERIES = 1000
SESSIONS = 64
START = 1_760_000_000_000
HOUR = 3_600_000
FRESH_QUERIES = 5


def main(
    entries: int = 1_000_000, megabytes: int = 1000, queries: int = 400, runs: int = 15
) -> None:
    with scratch_directory() as name:
        inside_a_process(name, entries, queries)
        if megabytes:
            print()
            print(as_table(fresh_process(name, megabytes, runs), runs))


def inside_a_process(root: Path, number: int, queries: int) -> None:
    """Prints milliseconds for one common term and for two terms."""
    began = time.perf_counter()
    texts = Texts(SEED)
    random = Random(SEED)
    store = SqliteStore(str(root / "million.db"))
    for file in range(0, number // ENTRIES_A_FILE, 100):
        store.write(batch_of(texts, random, n) for n in range(file, file + 100))
    store.connection.execute("PRAGMA wal_checkpoint(truncate)")
    size = (root / "million.db").stat().st_size / 1e6
    print(
        f"{number:,} entries, {size:,.0f} MB, written in {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    words, common = words_and_common(texts, random)
    kinds = {
        "one common term, p95 limit 25 ms": [random.choice(common) for _ in range(queries)],
        "one term": [random.choice(words) for _ in range(queries)],
        "two terms, p95 limit 25 ms": [" ".join(random.sample(words, 2)) for _ in range(queries)],
        "two common terms": [" ".join(random.sample(common, 2)) for _ in range(queries)],
        "eight terms": [" ".join(random.sample(words, 8)) for _ in range(queries)],
    }
    for title, queries_of_kind in kinds.items():
        _measure(store, title, queries_of_kind)
    several = [" ".join(random.sample(words, random.randint(1, 12))) for _ in range(CUT_QUERIES)]
    changed = changed_by_cut(store, several)
    print(
        f"what is cut off changes the top ten of {changed} of {len(several):,} queries of 1 to "
        f"12 terms (at most 2%)"
    )
    store.close()


def changed_by_cut(store: SqliteStore, queries: list[str]) -> int:
    """Return for how many queries the first ten hits differ, in content or order, without a cut."""
    index, wanted = (
        SqliteSearchIndex(store.connection, KnownTables()),
        Filter(limit=10),
    )
    changed = 0
    for query in queries:
        hits, whole = (
            search(index, query, wanted, whole=number) for number in (WHOLE, sys.maxsize)
        )
        changed += [hit.conversation.id for hit in hits] != [hit.conversation.id for hit in whole]
    return changed


def words_and_common(texts: Texts, random: Random) -> tuple[list[str], list[str]]:
    """Return the possible words, each as often as in the texts, and the common ones."""
    sample = [re.findall(r"\w{2,}", _text(texts, random).lower()) for _ in range(2000)]
    words = [word for text in sample for word in text if word not in STOP_WORDS]
    having = Counter(word for text in sample for word in set(text))
    return words, [word for word in words if having[word] >= COMMON_SHARE * len(sample)]


def _measure(store: SqliteStore, title: str, queries: list[str]) -> None:
    wanted = Filter(limit=10)
    times = []
    for query in queries:
        runs = []
        for _ in range(RUNS_OF_A_QUERY):
            began = time.perf_counter()
            store.search(query, wanted)
            runs.append((time.perf_counter() - began) * 1000)
        times.append(median(runs))
    cuts = quantiles(times, n=100)
    print(
        f"{title:36} p50 {median(times):6.1f}   p95 {cuts[94]:6.1f}   p99 {cuts[98]:6.1f} ms",
        flush=True,
    )


def batch_of(texts: Texts, random: Random, file: int) -> Batch:
    """A file of ENTRIES_A_FILE entries, cut into conversations."""
    state = FileState(
        "",
        f"-srv-agent/{file}.jsonl",
        "/",
        "claude-code",
        f"session-{file}",
        offset=1,
        cwd="/srv/agent",
    )
    entries = []
    for number in range(ENTRIES_A_FILE):
        when = START + file * 12 * HOUR + number * 1000 + number // GAP_EVERY * 2 * HOUR
        role = "assistant" if number % 3 else "user"
        key = file * ENTRIES_A_FILE + number + 1
        entries.append(NewEntry(key, 0, number, role, _text(texts, random), when, "/srv/agent"))
    return Batch(None, state, entries, [])


def _text(texts: Texts, random: Random) -> str:
    length = min(4000, int(random.lognormvariate(4.9, 1)) + 20)
    return texts.cut("prose", length, random)


def fresh_process(root: Path, megabytes: int, runs: int) -> list[Row]:
    """Return the rows for `session-memory search`, which also checks for new content.

    They are medians over FRESH_QUERIES of a kind."""
    projects = root / ".claude" / "projects"
    source = generated(SEED)
    for number in range(SESSIONS):
        source(
            projects / f"-home-dev-{number % 5}",
            megabytes * 1_000_000 // SESSIONS,
            time.time() - number * 86_400,
        )
    random = Random(SEED)
    rows = []
    with Stopwatch() as stopwatch:
        stopwatch.run(installed(root, "ingest"))
        for kind, words in zip(
            ("two terms", "two common terms"), words_and_common(Texts(SEED), random)
        ):
            pairs = [random.sample(words, 2) for _ in range(FRESH_QUERIES)]
            rows += _fresh_rows(stopwatch, root, f"{kind}, {megabytes} MB", pairs, runs)
    return rows


def _fresh_rows(
    stopwatch: Stopwatch, root: Path, title: str, pairs: list[list[str]], runs: int
) -> list[Row]:
    ripgrep = shutil.which("rg")
    name, raw = ("ripgrep", [ripgrep, "-i"]) if ripgrep else ("grep -r", ["/bin/grep", "-r", "-i"])
    ours = [installed(root, "search", " ".join(pair)) for pair in pairs]
    environment = ours[0].environment
    bare = Command([sys.executable, "-I", "-c", "pass"], environment)
    patterns = [
        [word for term in pair for word in ("-e", term)] + [f"{root}/.claude/projects"]
        for pair in pairs
    ]
    printing = [Command([*raw, *pattern], environment) for pattern in patterns]
    counting = [Command([*raw, "-c", *pattern], environment) for pattern in patterns]
    few = max(3, runs // 5)
    seconds, start = _compared(stopwatch, ours, [bare] * len(ours), runs, _expect_hits)
    printed, beside = _compared(stopwatch, printing, ours, few, _expect_output)
    counted, beside_counting = _compared(stopwatch, counting, ours, few, _expect_output)
    return [
        Row(f"search, {title}", seconds, start, "bare", 8.0),
        Row(f"{name}, {title} (at least 20 x)", printed, beside, "search"),
        Row(f"{name} -c, which only counts", counted, beside_counting, "search"),
    ]


def _compared(
    stopwatch: Stopwatch,
    commands: list[Command],
    others: list[Command],
    runs: int,
    check: Callable[[bytes], None],
) -> tuple[float, float]:
    """Return the median seconds of commands, and of the other commands run in turn with them."""
    pairs = [
        stopwatch.compare(command, other, runs, check=check)
        for command, other in zip(commands, others)
    ]
    return median([measured.seconds for measured, _ in pairs]), median(
        [other.seconds for _, other in pairs]
    )


def _expect_hits(stdout: bytes) -> None:
    if b"session-memory read" not in stdout:
        raise CommandError("the search finds nothing")


def _expect_output(stdout: bytes) -> None:
    if not stdout:
        raise CommandError("ripgrep finds nothing")


if __name__ == "__main__":
    run(main)
