"""Kept transcripts: their disk space, the time to keep them and to find nothing new, the memory.

    python -m bench.kept DIR    # all files of transcripts below DIR

`--zlib` simulates a missing library for zstd, `--memory` measures only the memory for one large
transcript.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from session_memory.history.copies import chunks
from session_memory.history.copies.pack import REDACTED, WHOLE, KeptSession, Pack
from session_memory.sessions.runtimes.backup import SessionFile

from .command import run

MEGABYTE = 1024 * 1024
LARGE_MEGABYTES = 300  # of one transcript, made of the others
STEPS = 10  # in which a transcript grows


def keep(pack: Pack, path: Path, name: str, form: str) -> None:
    """Keep the new content of one file, as upkeep does."""
    file = SessionFile(f"projects/{name}.jsonl", str(path))
    is_whole = False
    while not is_whole:
        descriptor = file.open()
        try:
            with pack.transaction():
                session = pack.begin(
                    KeptSession(0, "", "claude-code", "/", name, form, "", "", 0, 0, None, 0)
                )
                is_whole = pack.keep_file(session, file, descriptor)
        finally:
            os.close(descriptor)


def keep_all(pack: Pack, paths: list[Path], form: str) -> None:
    for number, path in enumerate(paths):
        keep(pack, path, str(number), form)


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(paths: list[Path], form: str, place: Path) -> None:
    """Print the figures of one form."""
    size = sum(path.stat().st_size for path in paths) / MEGABYTE
    with closing(Pack(str(place / f"{form}.db"))) as pack:
        took = seconds(lambda: keep_all(pack, paths, form))
        again = seconds(lambda: keep_all(pack, paths, form))
        disk = pack.size() / MEGABYTE
    print(
        f"{form}: {size:.1f} MB in {len(paths)} files take {disk:.1f} MB, {disk / size:.3f} of them"
    )
    print(
        f"{form}: {1000 * took / size:.0f} ms of CPU time per MB; read again, nothing new: "
        f"{1000 * again / size:.1f} ms"
    )


def measure_growth(paths: list[Path], place: Path) -> None:
    """Print the figures of a transcript that grows, and of a large one."""
    content = b"".join([path.read_bytes() for path in paths])
    growing = place / "growing.jsonl"
    with closing(Pack(str(place / "growing.db"))) as pack:
        took = 0.0
        for step in range(1, STEPS + 1):
            growing.write_bytes(content[: len(content) * step // STEPS])
            took += seconds(lambda: keep(pack, growing, "growing", WHOLE))
        disk = pack.size() / len(content)
    print(
        f"grown in {STEPS} steps: {disk:.3f} of it on the disk, "
        f"{1000 * took * MEGABYTE / len(content):.0f} ms per MB"
    )
    large = place / "large.jsonl"
    with large.open("wb") as file:
        while file.tell() < LARGE_MEGABYTES * MEGABYTE:
            file.write(content)
    del content
    with closing(Pack(str(place / "large.db"))) as pack:
        keep(pack, large, "large", WHOLE)


def main(directory: Path, zlib: bool = False, memory: bool = False) -> None:
    if zlib:
        setattr(chunks, "compressed", lambda content: None)  # noqa: B010
    paths = sorted(path for path in directory.rglob("*.jsonl") if path.is_file())
    with tempfile.TemporaryDirectory() as place:
        if not memory:
            measure(paths, WHOLE, Path(place))
            measure(paths, REDACTED, Path(place))
        measure_growth(paths, Path(place))
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")


if __name__ == "__main__":
    run(main)
