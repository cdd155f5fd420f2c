"""`python -m bench.extraction`: precision and recall of what is kept of conversations without a model, by kind.

Exits with 1 where the precision of a kind is below what is aimed at, or something rejected came back as anything else.
`--faults` also prints what is wrong, and what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..command import run
from ..real import TRANSCRIPTS
from . import real
from .excerpts import SETS, Judged, is_good, judge, read, scores, scores_of, table
from .rejections import PLANTED, came_back, kept


def main(faults: bool = False, transcripts: Path = TRANSCRIPTS) -> int:
    passed = True
    for path in SETS:
        judged = [judge(one) for one in read(path)]
        found = scores(judged)
        passed = passed and is_good(found)
        print(f"{path.stem}: {len(judged)} excerpts\n{table(found)}\n")
        if faults:
            _show_faults(judged)
    if transcripts.is_dir():
        *counts, wrong_ones = real.judged(transcripts)
        found = scores_of(*counts)
        passed = passed and is_good(found)
        print(f"real transcripts\n{table(found)}\n")
        print("".join([f"  wrong    {fault}\n" for fault in wrong_ones]) if faults else "", end="")
    wrong = came_back()
    print(f"rejected: of {PLANTED} planted {kept()} kept as that, {len(wrong)} came back as something else")
    print("".join([f"  {line}\n" for line in wrong]), end="")
    return 0 if passed and not wrong else 1


def _show_faults(judged: Iterable[Judged]) -> None:
    for one in judged:
        for item in one.wrong:
            print(f"  wrong    {one.excerpt.name}: {item.kind}: {item.title}")
        for expected in one.missing:
            print(f"  missing  {one.excerpt.name}: {'|'.join(expected.kinds)}: {expected.words}")


if __name__ == "__main__":
    run(main)
