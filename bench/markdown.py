"""`python -m bench.markdown`: searches for strings that are active as Markdown or do not come back.

The strings are adversarial. The judge is a CommonMark parser of the tests, which shares no code
with our own. CI runs a share of this.
"""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ProcessPoolExecutor

from session_memory.common.text.markdown import escape, unescape
from tests.text_scene import SPEAKERS, Judge, random_text

from .command import run

BATCH = 10_000


def main(strings: int = 1_000_000, seed: int = 0) -> int:
    """Return the exit code: 1 if a string is alive."""
    began = time.perf_counter()
    complaints = found_in(strings, seed)
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(
        f"{strings:,} strings in {time.perf_counter() - began:.0f} s, {len(complaints)} complaints"
    )
    return 1 if complaints else 0


def found_in(strings: int, seed: int) -> list[str]:
    """Return the complaints about so many random strings, using all processors."""
    counts = [min(BATCH, strings - at) for at in range(0, strings, BATCH)]
    seeds = [f"{seed} {number}" for number in range(len(counts))]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return [complaint for batch in pool.map(judged, seeds, counts) for complaint in batch]


def judged(seed: str, count: int) -> list[str]:
    """Return the complaints about `count` strings, which are the same for the same seed."""
    source, judge = random.Random(seed), Judge()
    complaints = []
    for _ in range(count):
        text = random_text(source)
        escaped = escape(text, SPEAKERS)
        complaint = judge.complaint(escaped) or (
            "" if unescape(escaped) == text else "it does not come back"
        )
        if complaint:
            complaints.append(f"{complaint}: {text!r} -> {escaped!r}")
    return complaints


if __name__ == "__main__":
    run(main)
