"""`python -m bench.corpus OUT`: writes a corpus of transcripts in the layout of Claude Code and of
Pi.

OUT/projects/-home-dev-<project>/<session id>.jsonl Claude Code
OUT/projects/-home-dev-<project>/<session id>/subagents/agent-<id>.jsonl sub-agents of the first
sessions OUT/pi/--home-dev-<project>--/<time>_<session id>.jsonl Pi

`--sizes` and `--pi` are the megabytes of each session, `--small` is the number of further ones of
50 to 400 KB, `--subagents` that of those with a sub-agent; `--append BYTES` only adds so much to
each session of Claude Code."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random

from ..command import run
from . import MEGABYTE, Author, append_turns, texts_of, write_session

SIZES = "200,120,100,80,80,70,60,50,50,40,40,30,25,20,15,10,6,3,1,0.2"
PROJECTS = ("alpha", "beta", "gamma-service", "delta-web", "epsilon")


def main(
    out: Path,
    *,
    seed: int = 7,
    sizes: str = SIZES,
    small: int = 30,
    subagents: int = 6,
    pi: str = "100,10,1",
    end: str = "2026-06-30T18:00:00+00:00",
    append: int = 0,
) -> None:
    begun = time.perf_counter()
    written = Corpus(out, seed, datetime.fromisoformat(end).timestamp())
    if append:
        written.append(append)
    else:
        written.write(_megabytes(sizes), small, subagents, _megabytes(pi))
    total = written.bytes_by_kind.total()
    print(f"{written.files} files, {total / 1e6:.1f} MB in {time.perf_counter() - begun:.1f} s")
    for kind, size in written.bytes_by_kind.most_common():
        print(f"  {kind:24} {size / 1e6:8.1f} MB {100 * size / total:5.1f}%")


class Corpus:
    """The files in a directory, whose sessions end at a time in seconds since the epoch."""

    def __init__(self, out: Path, seed: int, end: float) -> None:
        self.bytes_by_kind: Counter[str] = Counter()
        self.files = 0
        self._out, self._seed, self._end, self._texts = out, seed, end, texts_of(seed)

    def write(self, sizes: list[float], small: int, subagents: int, pi: list[float]) -> None:
        random = Random(f"sizes-{self._seed}")
        small_sizes = [random.randrange(50_000, 400_000) for _ in range(small)]
        for number, size in enumerate([*sizes, *small_sizes]):
            author = self._author(f"{number}", number, size)
            folder = self._out / "projects" / f"-home-dev-{PROJECTS[number % len(PROJECTS)]}"
            self._count(write_session(folder / f"{author.session_id}.jsonl", author))
            if number < subagents:
                subagent = self._author(f"{number}-subagent", number, 400_000)
                path = (
                    folder
                    / author.session_id
                    / "subagents"
                    / f"agent-{subagent.session_id[:7]}.jsonl"
                )
                subagent.session_id, subagent.is_subagent = author.session_id, True
                self._count(write_session(path, subagent))
        for number, size in enumerate(pi):
            author = self._author(f"pi-{number}", number, size)
            begun = author.timestamp().replace(":", "-").replace(".", "-")
            folder = self._out / "pi" / f"--home-dev-{PROJECTS[number % len(PROJECTS)]}--"
            self._count(write_session(folder / f"{begun}_{author.session_id}.jsonl", author, "pi"))

    def append(self, size: int) -> None:
        for path in sorted((self._out / "projects").glob("*/*.jsonl")):
            author = self._author(f"append-{path.stem}-{path.stat().st_size}", 0, size)
            self._count(append_turns(path, author))

    def _author(self, seed: str, number: int, size: float) -> Author:
        return Author(
            self._texts, f"{self._seed}-{seed}", PROJECTS[number % len(PROJECTS)], size, self._end
        )

    def _count(self, written: Counter[str]) -> None:
        self.bytes_by_kind.update(written)
        self.files += 1


def _megabytes(text: str) -> list[float]:
    return [float(size) * MEGABYTE for size in text.split(",") if size]


if __name__ == "__main__":
    run(main)
