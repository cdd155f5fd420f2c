"""`python -m bench.collisions`: histories of sessions in one clone, and their collision reports.

The histories are generated, each with real git. The reports with each prompt and each edit are
compared with the real events. It prints, by kind, the share of collisions that was reported with
the next prompt (or, to the later of two editors of a file, with the result of its edit), and the
share of false reports. `--hard` plays histories with rare events, `--show` prints histories with
missing or false reports, `--check` exits with 1 if a share is too low or too high.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

from .command import run
from .hard_clones import HardHistory
from .scratch import scratch_directory
from .shared_clones import KINDS, History

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
    with scratch_directory() as root:
        history = (HardHistory if is_hard else History)(root, seed)
        history.run()
    if show and any(line.startswith(("MISSED", "FALSE")) for line in history.log):
        print(f"-- history {seed}", *history.log, sep="\n")
    return Counts(history.due, history.hits, history.told, history.false)


def total(counts: list[Counts]) -> Counts:
    """The sum of the counts of several histories."""
    return Counts(*[sum(column, Counter[str]()) for column in zip(*counts)])


def table(counts: Counts) -> str:
    """A Markdown table of the shares."""
    lines = [
        "| collision | due | told | told, of what is due | false, of what is told |",
        "|---|---|---|---|---|",
    ]
    for kind in (*KINDS, "all"):
        due, hits, told_count, false = (
            column.total() if kind == "all" else column[kind] for column in counts
        )
        shares = (
            f"{hits / due:.1%}" if due else "-",
            f"{false / told_count:.1%}" if told_count else "-",
        )
        lines.append(f"| {kind} | {due} | {hits} | {shares[0]} | {shares[1]} |")
    return "\n".join(lines)


def is_good(counts: Counts) -> bool:
    """Return whether enough is reported, and little of it false.

    This counts edits, work that git took, and HEAD."""
    for kinds in (KINDS[:2], KINDS[2:3], KINDS[3:4], KINDS[4:]):
        due, hits, told_count, false = (sum(column[kind] for kind in kinds) for column in counts)
        if hits < LEAST_TOLD * due or false > MOST_FALSE * told_count:
            return False
    return True


def main(
    histories: int = 1000,
    seed: int = 7,
    hard: bool = False,
    show: bool = False,
    check: bool = False,
) -> int:
    """Return the exit code: 1 if `check` and too few reports were made, or too many false ones."""
    seeds = range(seed, seed + histories)
    with ProcessPoolExecutor(max_workers=2) as pool:
        counts = total(list(pool.map(partial(play, show=show, is_hard=hard), seeds, chunksize=8)))
    print(f"{histories} histories of two to four sessions in one clone\n")
    print(table(counts))
    return 1 if check and not is_good(counts) else 0


if __name__ == "__main__":
    run(main)
