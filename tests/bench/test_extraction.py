"""The benchmark of what is kept without a model: its sets, and that it sees what is wrong."""

from __future__ import annotations

import pytest

from bench.extraction.excerpts import SETS, Excerpt, Expected, entries_of, is_good, judge, read, scores, table
from bench.extraction.rejections import PLANTED, came_back, kept


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_nearly_all_that_is_kept_of_the_excerpts_is_right(path):
    found = scores([judge(one) for one in read(path)])
    assert is_good(found), table(found)
    assert all(found[kind].recall > 0.6 for kind in ("preference", "rejected")), table(found)


def test_a_hundred_excerpts_are_labelled():
    assert sum(len(read(path)) for path in SETS) >= 100


def test_nothing_rejected_comes_back_as_anything_else():
    assert PLANTED == 200
    assert came_back() == []
    assert kept() > PLANTED * 0.6


def test_what_is_wrong_and_what_is_missing_is_seen():
    entries = entries_of([("U", "Always use tabs.")])
    assert not judge(Excerpt("right", entries, [Expected(("preference",), "always use tabs")])).wrong
    wrong = judge(Excerpt("wrong", entries, [Expected(("fact",), "always use tabs")]))
    assert (len(wrong.right), len(wrong.wrong), len(wrong.missing)) == (0, 1, 1)
    assert not is_good(scores([wrong]))
