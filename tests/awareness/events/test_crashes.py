"""A share of `python -m bench.crashes`: the store after killed and failing ingestions."""

from __future__ import annotations

import os
import random
import sys

import apsw
import pytest
from share import some

from bench.crashes import check, faults, ingest, kill
from bench.histories import Histories


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")
def test_nothing_is_lost_or_doubled_when_ingestions_are_killed():
    number = some(150, 50)
    assert kill(number, seed=sys.maxsize) > number // 8


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_a_write_a_sync_or_an_open_fails():
    assert faults(seed=3, steps=3, kinds=(apsw.FullError,)) > 30


def test_whatever_becomes_of_transcripts_nothing_that_was_read_is_lost_or_doubled(tmp_path):
    database = str(tmp_path / "memory.db")
    histories = Histories(
        tmp_path / "projects", random.Random(11), lambda: ingest(tmp_path / "projects", database)
    )
    for _ in range(6):
        for _ in range(40):
            histories.step()
        check(tmp_path / "projects", database, histories)
