"""The benchmark of collisions: a few histories with real git, each with what happened and what was
told."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.collisions import KINDS, Counts, is_good, play, table, total


def test_what_happens_in_a_clone_is_told_and_nothing_else() -> None:
    counts = total([play(seed) for seed in range(4, 8)])  # in which much happens, of each kind
    assert counts.due.total() > 40
    assert is_good(counts), table(counts)


@pytest.mark.slow
def test_what_is_rare_in_a_clone_is_told_too() -> None:
    counts = total([play(seed, is_hard=True) for seed in range(20, 28)])
    assert counts.due.total() > 30
    assert is_good(counts), table(counts)


def test_too_little_or_what_is_false_is_not_good() -> None:
    good = Counts(*[Counter({kind: number for kind in KINDS}) for number in (100, 99, 100, 0)])
    assert is_good(good)
    assert not is_good(good._replace(hits=good.hits - Counter({KINDS[3]: 3})))
    assert not is_good(good._replace(false=Counter({KINDS[0]: 3})))
    assert "| HEAD | 100 | 99 | 99.0% | 0.0% |" in table(good)
