"""`python -m bench.ingest`: the time of ingestion, compared with decoding every line with orjson.

All times except agentsview's are processor times, including the processes that read ahead. The exit
code is 1 if a limit is missed.

First import: each in a process of its own, one after the other, on the same files. Appending: one
megabyte after a large file, compared with the same megabyte as a separate file. Runtimes: a
gigabyte of each runtime's transcripts, compared with one of Claude Code's. Memory: a process of its
own over one file of `--large` megabytes. `--transcripts DIR` uses real transcripts. `--peers` also
races agentsview from PyPI, each in its own process on the same files (this needs a package index).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.sessions.runtimes.table import all_runtimes, runtime

from .command import run
from .corpus import FORMATS, MEGABYTE, Author, Texts, write_session
from .report import Row, as_table
from .scratch import scratch_directory
from .sources import copied, decode, generated
from .stopwatch import compile_package, seconds

OWN = "agent-sdk"
DEEPEST = (
    max(known_runtime.DEEPEST for known_runtime in all_runtimes()) + 1
)  # below a runtime's own directory
SESSIONS = 24  # that share the megabytes: enough for each kind of them
IMPORT_LIMIT = 8.5  # times the processor time of decoding every line
APPEND_LIMIT = 3.0  # times the time that the same bytes take as a file of their own
MEMORY_LIMIT_MEGABYTES = 150
SIZE_LIMIT = 2.6  # times the bytes of text that the store holds
# Times a gigabyte of Claude Code's: a gigabyte of these two has 1.9 and 1.6 times as much text.
RUNTIME_LIMITS = {"pi": 1.8, "qwen": 1.6}
RUNTIME_LIMIT = 1.1
PEER = "agentsview==0.46.1"
TIMED = """
import resource, sys
import apsw
from bench import ingest
from session_memory.history.store.ingest import _read_ahead as read_ahead
from session_memory.history.store.sqlite import _writer as writer
def spent():
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)
began = spent()
getattr(ingest, sys.argv[1])(*sys.argv[2:])
print(spent() - began)
"""
MEASURED = "import sys; from bench.ingest import import_all; import_all(sys.argv[1], sys.argv[2])"


def main(
    megabytes: int = 120,
    large: int = 200,
    runs: int = 5,
    transcripts: Path | None = None,
    peers: bool = False,
) -> int:
    compile_package()
    with scratch_directory() as root:
        make = copied(transcripts) if transcripts else generated(seed=7)
        projects = root / ".claude" / "projects"
        for number in range(SESSIONS):
            when = time.time() - 3600 * (SESSIONS - number)
            make(projects / f"-home-dev-{number % 5}", megabytes * MEGABYTE // SESSIONS, when)
        os.sync()  # else whoever syncs first waits for all of it
        rows = [first_import(root, projects, runs), appended(root, make, large, runs)]
        for format in FORMATS:
            rows += of_runtime(root, format, megabytes, runs) if format != OWN else []
        if peers:
            rows.append(against_peer(root, projects, runs))
        print(as_table(rows, runs, "processor times"))
        size, memory = share(root / "first.db"), memory_for_one_file(root)
        print(f"database: {size:.2f} times the bytes of text that it holds (limit {SIZE_LIMIT})")
        print(f"memory: {memory} MB at most (limit {MEMORY_LIMIT_MEGABYTES})")
        is_over = size > SIZE_LIMIT or memory > MEMORY_LIMIT_MEGABYTES
        return int(is_over or any(row.is_over for row in rows))


def import_all(database: str, projects: str) -> None:
    """Takes everything below `projects` into a store."""
    store = SqliteStore(database)
    ingestion = Ingestion(store, workers=os.cpu_count() or 1)
    ingestion.scan(SourceDirectory(projects, deepest=DEEPEST))
    ingestion.finish()
    store.close()


def first_import(root: Path, projects: Path, runs: int) -> Row:
    """Return the time to import and the time to decode every line, each in a fresh process."""
    importing, decoding = [], []
    for number in range(runs):
        database = root / ("first.db" if not number else f"first-{number}.db")
        importing.append(_seconds_alone("import_all", str(database), str(projects)))
        decoding.append(_seconds_alone("decode_all", str(projects)))
    rate = sum(path.stat().st_size for path in projects.rglob("*.jsonl")) / 1e6 / median(importing)
    return Row(
        f"first import, {rate:.0f} MB/s",
        median(importing),
        median(decoding),
        "orjson, every line",
        IMPORT_LIMIT,
    )


def decode_all(projects: str) -> None:
    decode(sorted(Path(projects).rglob("*.jsonl")))


def of_runtime(root: Path, format: str, megabytes: int, runs: int) -> list[Row]:
    """Measure the time for a byte of a runtime's transcripts against one of Claude Code's.

    Also measure it for a byte of the stored text. For both, a fifth is imported first, in turn,
    each by a single process."""
    size, ours, theirs = megabytes * MEGABYTE // 5, root / format / "own", root / format / "theirs"
    texts = Texts(7)
    for number in range(SESSIONS):
        for directory, name in ((ours, OWN), (theirs, format)):
            author = Author(
                texts, f"{name}-{number}", "alpha", size // SESSIONS, time.time() - 3600
            )
            path = Path(
                runtime(name).own_path(
                    {"session_id": author.session_id}, author.cwd, str(directory)
                )
            )
            write_session(path, author, name)
    sizes = [
        sum(path.stat().st_size for path in directory.rglob("*.jsonl"))
        for directory in (theirs, ours)
    ]
    times: list[list[float]] = [[], []]
    texts_held = [0, 0]
    for number in range(runs):
        for which, directory in enumerate((theirs, ours)):
            database = str(root / f"{format}-{directory.name}-{number}.db")
            times[which].append(_seconds_alone("import_all", database, str(directory)))
            texts_held[which] = _text_bytes(database)
    rows = []
    for title, amounts, of, limit in (
        (f"a gigabyte of {format}", sizes, "of", RUNTIME_LIMITS.get(format, RUNTIME_LIMIT)),
        (f"of text in {format}", texts_held, "in", RUNTIME_LIMIT),
    ):
        theirs_takes, ours_takes = [
            median(run_seconds) / amount * 1e9 for run_seconds, amount in zip(times, amounts)
        ]
        rows.append(Row(title, theirs_takes, ours_takes, f"{of} {OWN}", limit))
    return rows


def appended(
    root: Path, make: Callable[[Path, int, float], Path], megabytes: int, runs: int
) -> Row:
    """Return the time for a megabyte after `megabytes` others, relative to one megabyte alone."""
    large = make(root / "large" / "-home-dev-large", megabytes * MEGABYTE, time.time() - 3600)
    extra = make(root / "extra" / "-home-dev-extra", MEGABYTE, time.time()).read_bytes()
    database = str(root / "large.db")
    import_all(database, str(root / "large"))
    growing, alone = [], []
    for number in range(runs):
        with large.open("ab") as file:
            file.write(extra.replace(b'"uuid":"', b'"uuid":"%d-' % number))
        growing.append(_seconds_alone("import_all", database, str(root / "large")))
        directory = root / f"alone-{number}" / "-home-dev-alone"
        directory.mkdir(parents=True)
        (directory / "alone.jsonl").write_bytes(extra)
        alone_database = str(root / f"alone-{number}.db")
        alone.append(_seconds_alone("import_all", alone_database, str(directory.parent)))
    return Row(
        f"1 MB behind {megabytes} MB", median(growing), median(alone), "1 MB alone", APPEND_LIMIT
    )


def against_peer(root: Path, projects: Path, runs: int) -> Row:
    """Return the time of agentsview's first import relative to ours, both as processes."""
    environment = root / "peer"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", PEER], check=True)
    ours, theirs = [], []
    for number in range(max(1, runs // 3)):
        ours.append(
            seconds(
                partial(
                    _run, [sys.executable, "-c", MEASURED, f"{root}/own-{number}.db", str(projects)]
                )
            )
        )
        home = root / f"peer-home-{number}"
        home.mkdir()
        (home / ".claude").symlink_to(root / ".claude")
        theirs.append(
            seconds(partial(_run, [str(environment / "bin" / "agentsview"), "sync"], home))
        )
    return Row(f"{PEER} (at least 4 x)", median(theirs), median(ours), "session-memory")


def share(database: Path) -> float:
    """The size of a store's file in bytes of the text that it holds."""
    store = SqliteStore(str(database))
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    counts = store.counts()
    store.close()
    return counts.database_bytes / counts.text_bytes


def _text_bytes(database: str) -> int:
    store = SqliteStore(database)
    held = store.counts().text_bytes
    store.close()
    return held


def memory_for_one_file(root: Path) -> int:
    """Return the peak memory in MB of a process that imports one large file, and of its reader."""
    script = f"{MEASURED}; from bench.stopwatch import peak_memory; print(peak_memory())"
    command = [sys.executable, "-c", script, str(root / "memory.db"), str(root / "large")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) // MEGABYTE


def _run(command: list[str], home: Path | None = None) -> None:
    environment = {"HOME": str(home or "/nonexistent"), "PATH": os.defpath, "LANG": "C.UTF-8"}
    environment |= {"AGENTSVIEW_NO_DAEMON": "1"}  # else it leaves a server behind
    subprocess.run(
        command, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL
    )


def _seconds_alone(function: str, *arguments: str) -> float:
    """Return the processor time of a function here in a process that has done its imports."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED, function, *arguments], check=True, capture_output=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    run(main)
