"""Precision and recall of the items of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .excerpts import KINDS, Judged

LEAST_PRECISION = 0.90


class Score(NamedTuple):
    """Of a kind: how many items were right, wrong and missing."""

    right: int
    wrong: int
    missing: int

    @property
    def precision(self) -> float:
        """1 where nothing was made."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """1 where there was nothing."""
        return self.right / (self.right + self.missing) if self.right + self.missing else 1.0


def scores(judged: Iterable[Judged]) -> dict[str, Score]:
    """The score of each kind. A missing item that may be of several kinds counts for the first."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for one in judged:
        right.update(item.kind for item in one.right)
        wrong.update(item.kind for item in one.wrong)
        missing.update(expected.kinds[0] for expected in one.missing)
    return scores_of(right, wrong, missing)


def scores_of(right: Mapping[str, int], wrong: Mapping[str, int], missing: Mapping[str, int]) -> dict[str, Score]:
    """The score of each kind."""
    return {kind: Score(right.get(kind, 0), wrong.get(kind, 0), missing.get(kind, 0)) for kind in KINDS}


def is_good(found: Mapping[str, Score]) -> bool:
    """Whether the precision of each kind is what is aimed at."""
    return all(score.precision >= LEAST_PRECISION for score in found.values())


def table(found: Mapping[str, Score]) -> str:
    """The scores in lines."""
    lines = [f"  {'kind':12} {'right':>5} {'wrong':>5} {'missing':>7}  precision  recall"]
    for kind, one in found.items():
        lines.append(
            f"  {kind:12} {one.right:5} {one.wrong:5} {one.missing:7}  {one.precision:9.2f}  {one.recall:6.2f}"
        )
    return "\n".join(lines)
