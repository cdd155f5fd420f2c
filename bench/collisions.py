"""`python -m bench.collisions`: generated histories of sessions that share a clone, each with real git, and what the
sessions are told of their collisions with each prompt and with each edit, against what really happened.

It prints, by kind, which share of the collisions was told with the next prompt (and to the later of two who edit a
file, with the result of its edit), and which share of what was told is false.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .hard_clones import HardHistory
from .shared_clones import KINDS, History

HISTORIES = 1000
SEED = 7
LEAST_TOLD = 0.98
MOST_FALSE = 0.01


class Counts(NamedTuple):
    """The counts of some histories, by kind."""

    due: Counter[str]
    hits: Counter[str]
    told: Counter[str]
    false: Counter[str]


def play(seed: int, show: bool = False, is_hard: bool = False) -> Counts:
    """The counts of one history."""
    root = Path(tempfile.mkdtemp(prefix="session-memory-bench-"))
    try:
        history = (HardHistory if is_hard else History)(root, seed)
        history.run()
    finally:
        shutil.rmtree(root)
    if show and any(line.startswith(("MISSED", "FALSE")) for line in history.log):
        print(f"-- history {seed}", *history.log, sep="\n")
    return Counts(history.due, history.hits, history.told, history.false)


def total(counts: list[Counts]) -> Counts:
    """The sum of the counts of several histories."""
    return Counts(*[sum(column, Counter[str]()) for column in zip(*counts)])


def table(counts: Counts) -> str:
    """A Markdown table of the shares."""
    lines = ["| collision | due | told | told, of what is due | false, of what is told |", "|---|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        due, hits, told, false = (column.total() if kind == "all" else column[kind] for column in counts)
        shares = (f"{hits / due:.1%}" if due else "-", f"{false / told:.1%}" if told else "-")
        lines.append(f"| {kind} | {due} | {hits} | {shares[0]} | {shares[1]} |")
    return "\n".join(lines)


def is_good(counts: Counts) -> bool:
    """Whether enough is told, and little of it false: of the edits, of what git took, and of HEAD."""
    for kinds in (KINDS[:2], KINDS[2:3], KINDS[3:4], KINDS[4:]):
        due, hits, told, false = (sum(column[kind] for kind in kinds) for column in counts)
        if hits < LEAST_TOLD * due or false > MOST_FALSE * told:
            return False
    return True


def main() -> int:
    """Returns the exit code: 1 where too little was told, or too much of it is false, and that was to be checked."""
    parser = argparse.ArgumentParser("python -m bench.collisions", description=__doc__)
    parser.add_argument("--histories", type=int, default=HISTORIES, metavar="N", help=f"how many ({HISTORIES})")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="the first one")
    parser.add_argument("--hard", action="store_true", help="histories with what is rare")
    parser.add_argument("--show", action="store_true", help="print each history in which something is missed or false")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a share is not as it should be")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.histories)
    with ProcessPoolExecutor(max_workers=2) as pool:
        counts = total(
            list(pool.map(play, seeds, [options.show] * len(seeds), [options.hard] * len(seeds), chunksize=8))
        )
    print(f"{options.histories} histories of two to four sessions in one clone\n")
    print(table(counts))
    return 1 if options.check and not is_good(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
