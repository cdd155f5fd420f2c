"""A share of `python -m bench.acknowledgement`: nothing is lost, and nothing is told twice."""

from __future__ import annotations

import pytest

from bench.acknowledgement import RUNTIMES, play


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_message_reaches_the_agent_once_whatever_becomes_of_its_prompts(runtime: str) -> None:
    result = play(runtime, messages=300, seed=5)
    assert len(result.fates) > 6
    assert (result.said >= 300, result.lost, result.twice) == (True, 0, 0)
