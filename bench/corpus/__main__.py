"""`python -m bench.corpus OUT`: writes a corpus of transcripts in the layout of Claude Code and of Pi.

OUT/projects/-home-dev-<project>/<session id>.jsonl                            Claude Code
OUT/projects/-home-dev-<project>/<session id>/subagents/agent-<id>.jsonl       sub-agents of the first sessions
OUT/pi/--home-dev-<project>--/<time>_<session id>.jsonl                        Pi
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random

from . import MEGABYTE, Author, Texts, append_turns, write_session

END = "2026-06-30T18:00:00+00:00"
SIZES = "200,120,100,80,80,70,60,50,50,40,40,30,25,20,15,10,6,3,1,0.2"
PROJECTS = ("alpha", "beta", "gamma-service", "delta-web", "epsilon")


def main() -> None:
    options = _options()
    begun = time.perf_counter()
    texts = Texts(options.seed)
    written = _append(options, texts) if options.append else _write(options, texts)
    bytes_by_kind: Counter[str] = Counter()
    files = 0
    for bytes_of_file in written:
        bytes_by_kind.update(bytes_of_file)
        files += 1
    total = bytes_by_kind.total()
    print(f"{files} files, {total / 1e6:.1f} MB in {time.perf_counter() - begun:.1f} s")
    for kind, size in bytes_by_kind.most_common():
        print(f"  {kind:24} {size / 1e6:8.1f} MB {100 * size / total:5.1f}%")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.corpus", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sizes", type=_megabytes, default=SIZES, help="MB of each Claude Code session")
    parser.add_argument("--small", type=int, default=30, help="how many further ones, of 50 to 400 KB")
    parser.add_argument("--subagents", type=int, default=6, help="how many of them have a sub-agent")
    parser.add_argument("--pi", type=_megabytes, default="100,10,1", help="MB of each Pi session")
    parser.add_argument("--end", type=_time, default=END, help="when the sessions end (ISO 8601)")
    parser.add_argument("--append", type=int, metavar="BYTES", help="only add so much to each Claude Code session")
    return parser.parse_args()


def _write(options: argparse.Namespace, texts: Texts) -> Iterator[Counter[str]]:
    random = Random(f"sizes-{options.seed}")
    small = [random.randrange(50_000, 400_000) for _ in range(options.small)]
    for number, size in enumerate([*options.sizes, *small]):
        project = PROJECTS[number % len(PROJECTS)]
        folder = options.out / "projects" / f"-home-dev-{project}"
        author = Author(texts, f"{options.seed}-{number}", project, size, options.end)
        yield write_session(folder / f"{author.session_id}.jsonl", author)
        if number < options.subagents:
            subagent = Author(texts, f"{options.seed}-{number}-subagent", project, 400_000, options.end)
            path = folder / author.session_id / "subagents" / f"agent-{subagent.session_id[:7]}.jsonl"
            subagent.session_id, subagent.is_subagent = author.session_id, True
            yield write_session(path, subagent)
    for number, size in enumerate(options.pi):
        project = PROJECTS[number % len(PROJECTS)]
        author = Author(texts, f"{options.seed}-pi-{number}", project, size, options.end)
        begun = author.timestamp().replace(":", "-").replace(".", "-")
        path = options.out / "pi" / f"--home-dev-{project}--" / f"{begun}_{author.session_id}.jsonl"
        yield write_session(path, author, "pi")


def _append(options: argparse.Namespace, texts: Texts) -> Iterator[Counter[str]]:
    for path in sorted((options.out / "projects").glob("*/*.jsonl")):
        seed = f"{options.seed}-append-{path.stem}-{path.stat().st_size}"
        yield append_turns(path, Author(texts, seed, "alpha", options.append, options.end))


def _megabytes(text: str) -> list[float]:
    return [float(size) * MEGABYTE for size in text.split(",") if size]


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


if __name__ == "__main__":
    main()
