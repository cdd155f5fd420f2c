"""`python -m bench.secrets`: the speed of redaction, and its finds in samples and transcripts.

Each made-up sample is made `--seeds N` times; `--show` lists the finds in transcripts, without
their middle."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from session_memory.common.text.secrets.redaction import find_secrets, redact, redact_all
from tests.text_scene import samples

from .command import run
from .real import TRANSCRIPTS
from .report import Row, as_table
from .stopwatch import seconds

SURROUNDINGS = ("see {} here.", '"text": "{}"', "a\n{}\nb", "`{}`", "({})")
SIZES = ((0, 200), (200, 1_000), (1_000, 4_000), (4_000, 20_000), (20_000, sys.maxsize))
RUNS = 5
SHORT = 1_000  # characters
AT_ONCE = 200  # lines
TOGETHER_LIMIT = 0.4  # times the time of redacting each short line alone
# Times the time of replacing each byte by another one, at the speed of memory
PASSES_LIMIT = 75


def main(transcripts: Path = TRANSCRIPTS, seeds: int = 20, show: bool = False) -> int:
    print("recall\n" + "\n".join(_recall(seeds)))
    rows: list[Row] = []
    if transcripts.is_dir():
        texts = [text for path in sorted(transcripts.rglob("*.jsonl")) for text in _records(path)]
        print("\nspeed, texts of so many characters\n" + "\n".join(_speed(texts)))
        rows = _compared(texts)
        print(as_table(rows, RUNS))
        print("\nfound in the transcripts\n" + "\n".join(_finds(texts, show)))
    else:
        print(f"no transcripts in {transcripts}: give some with --transcripts", file=sys.stderr)
    return int(any(row.is_over for row in rows))


def _records(path: Path) -> Iterator[str]:
    """Of every record of a transcript all its strings, as one text."""
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            text = "\n".join(_strings(json.loads(line)))
        except ValueError:
            continue
        if text:
            yield text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _recall(seeds: int) -> Iterator[str]:
    """Yield a line for all samples, and one for every rule that missed something."""
    made: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for seed in range(seeds):
        for sample in samples(seed):
            for surroundings in SURROUNDINGS:
                text = surroundings.replace("{}", sample.text)
                start = surroundings.index("{") + sample.start
                end = start + len(sample.secret)
                made[sample.kind] += 1
                missed[sample.kind] += not any(
                    s.start <= start and s.end >= end for s in find_secrets(text)
                )
    total, lost = made.total(), missed.total()
    whole = sum(not missed[rule] for rule in made)
    share_found = f"{total - lost} of {total} samples"
    yield f"  {(total - lost) / total:8.3%}  {share_found}; {whole} of {len(made)} kinds without a miss"
    yield from (
        f"  {missed[rule]:4} of {made[rule]} missed: {rule}" for rule in made if missed[rule]
    )


def _speed(texts: list[str]) -> Iterator[str]:
    """Yield a line for every size of text and one for all, in million characters per second.

    The best of several runs counts."""
    for low, high in (*SIZES, (0, sys.maxsize)):
        chosen = [text for text in texts if low <= len(text) < high]
        size = sum(map(len, chosen)) / 1e6
        took = min(
            seconds(partial(deque, map(redact, chosen), 0), time.process_time) for _ in range(RUNS)
        )
        most = "" if high == sys.maxsize else f"{high:,}"
        yield f"  {low:7,} - {most:7}{len(chosen):6} texts {size:6.1f} MB {size / took:6.1f} MB/s"


def _compared(texts: list[str]) -> list[Row]:
    """Return the time for short lines together, and for all texts against the physical limit."""
    lines = [line for text in texts for line in text.split("\n") if " " in line]
    short = [line for line in lines if len(line) < SHORT]
    parts = [short[start : start + AT_ONCE] for start in range(0, len(short), AT_ONCE)]
    contents = [text.encode() for text in texts]
    same = bytes(range(256))

    def median_of(function: Callable[[Any], object], values: Sequence[Any]) -> float:
        return median(
            seconds(partial(deque, map(function, values), 0), time.process_time)
            for _ in range(RUNS)
        )

    alone = median_of(redact, short)
    passes = median_of(lambda content: content.translate(same), contents)
    return [
        Row(
            "short lines together",
            median_of(redact_all, parts),
            alone,
            "each alone",
            TOGETHER_LIMIT,
        ),
        Row(
            "all texts",
            median_of(redact, texts),
            passes,
            "one pass at the speed of memory",
            PASSES_LIMIT,
        ),
    ]


def _finds(texts: list[str], show: bool) -> Iterator[str]:
    """Return the number of finds.

    Only a reader can tell if one is false, so it is the upper limit."""
    size = sum(map(len, texts)) / 1e6
    finds = Counter((s.kind, text[s.start : s.end]) for text in texts for s in find_secrets(text))
    kinds = Counter(kind for kind, _ in finds)
    most = len(finds) / size
    yield (
        f"  {finds.total()} finds, {len(finds)} different: at most {most:.2f} false positives a MB"
    )
    yield "  " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    if show:
        for (kind, secret), count in finds.most_common():
            yield f"  {count:4} {kind:20} {_masked(secret)}"


def _masked(secret: str) -> str:
    shown = max(1, min(8, len(secret) // 4))
    return f"{secret[:shown]!r}...{secret[-shown:]!r} ({len(secret)} characters)"


if __name__ == "__main__":
    run(main)
