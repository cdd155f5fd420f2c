"""Sources of a scene's transcripts, generated or copied from real ones.

The time to decode their lines is the lower bound for reading them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import orjson

from session_memory.sessions.runtimes.table import runtime

from .corpus import MEGABYTE, Author, texts_of, write_session

Source = Callable[[Path, int, float], Path]
"""Writes into a directory a transcript of some bytes or a little more, with its last record at a time in seconds since
the epoch, and returns its path: `<session id>.jsonl`."""

_ID = re.compile(rb'("(?:uuid|parentUuid)": ?")[0-9a-f]{8}')
_TIMESTAMP = re.compile(rb'"timestamp": ?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')


def generated(seed: int) -> Source:
    """Return a source of invented transcripts, which depend only on the seed, except times."""
    texts = texts_of(seed)
    numbers = count()

    def write(directory: Path, size: int, end: float) -> Path:
        author = Author(texts, f"{seed}-{next(numbers)}", "alpha", size, end)
        path = directory / f"{author.session_id}.jsonl"
        write_session(path, author)
        return path

    return write


def generated_for(seed: int, format: str, cwd: str) -> Source:
    """Return a source of invented transcripts of a runtime, by its format.

    The sessions were started in `cwd`; each transcript is at the runtime's own path for it, below a
    separate directory."""
    texts, runtime_instance, numbers = texts_of(seed), runtime(format), count()

    def write(config_dir: Path, size: int, end: float) -> Path:
        author = Author(texts, f"{format}-{seed}-{next(numbers)}", "alpha", size, end)
        author.cwd = cwd
        path = Path(
            runtime_instance.own_path(
                {"session_id": author.session_id, "cwd": cwd}, cwd, str(config_dir)
            )
        )
        write_session(path, author, format)
        return path

    return write


def copied(directory: Path) -> Source:
    """Return a source of copies of the transcripts below `directory`, one after the other.

    They are moved in time, each with its own ids, because known ones cost nothing. If a transcript
    is too short, the following ones are appended. Raises FileNotFoundError if there are none."""
    files = sorted(
        path for path in directory.rglob("*.jsonl") if not path.name.startswith("agent-")
    )
    if not files:
        raise FileNotFoundError(f"{directory}: no transcripts below it")
    numbers = count()
    copies = count()
    endless = _endless(files)

    def write(directory: Path, size: int, end: float) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{next(numbers):08x}-0000-4000-a000-000000000000.jsonl"
        with open(path, "wb") as target:
            while target.tell() < size:
                transcript = with_ids_of_its_own(
                    next(endless).read_bytes().rstrip(b"\n"), next(copies)
                )
                target.write(_moved(transcript + b"\n", end))
        return path

    return write


def with_ids_of_its_own(transcript: bytes, number: int) -> bytes:
    """A copy of a transcript, another one for each number."""
    return _ID.sub(rb"\g<1>%08x" % number, transcript)


def decode(files: Iterable[Path]) -> None:
    """Decode every line of each file, the least work of a program that reads all of them."""
    for path in files:
        with open(path, "rb", buffering=MEGABYTE) as file:
            for line in file:
                try:
                    orjson.loads(line)
                # there are such lines in real ones; contextlib.suppress takes its time
                except orjson.JSONDecodeError:
                    continue


def _endless(files: list[Path]) -> Iterator[Path]:
    while True:
        yield from files


def _moved(transcript: bytes, end: float) -> bytes:
    """Return the transcript with all its timestamps moved, so the latest is at `end`."""
    latest = max(_TIMESTAMP.findall(transcript), default=None)
    if latest is None:
        return transcript
    by = timedelta(seconds=end) - (_utc(latest) - datetime(1970, 1, 1))

    def move(match: re.Match[bytes]) -> bytes:
        return b'"timestamp":"' + (_utc(match[1]) + by).isoformat(timespec="seconds").encode()

    return _TIMESTAMP.sub(move, transcript)


def _utc(timestamp: bytes) -> datetime:
    return datetime.fromisoformat(timestamp.decode())
