"""What a host finds in a transcript of each runtime after it was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_memory.extras.conformance.fixture import fixture_of
from session_memory.extras.host.recovery import recover
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes

FIXTURES = Path(__file__).parents[2] / "sessions" / "runtimes" / "fixtures"


@pytest.mark.parametrize("runtime", all_runtimes(), ids=lambda runtime: runtime.name)
def test_answers_that_a_killed_host_lost_are_found_again(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = fixture_of(runtime, FIXTURES / runtime.name, tmp_path, monkeypatch)
    first, _, last = fixture.own["prompt_ids"]
    found = recover(runtime, str(fixture.path()), {first, last})
    assert [text for _, text in found.answers] == ["Deployed.", "You are welcome."]
    assert found.begun == set()
    assert recover(runtime, str(fixture.path()), {"none-of-them"}) == ([], set())
