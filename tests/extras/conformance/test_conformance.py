"""Every runtime of the table passes the conformance suite that the pack ships
(session_memory/extras/conformance)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_memory.extras.conformance.cases import TestCases
from session_memory.extras.conformance.fixture import Fixture, fixture_of
from session_memory.extras.conformance.runtimes import TestHooks, TestInstall, TestSessions
from session_memory.extras.conformance.transcripts import (
    TestDamage,
    TestDelivery,
    TestEntries,
    TestFilters,
    TestForks,
    TestResults,
    TestRewritten,
    TestTitles,
    TestTurns,
    TestUsage,
)
from session_memory.sessions.runtimes.detection import running_session, runtime_of
from session_memory.sessions.runtimes.table import all_runtimes, runtime

__all__ = [
    "TestCases",
    "TestDamage",
    "TestDelivery",
    "TestEntries",
    "TestFilters",
    "TestForks",
    "TestHooks",
    "TestInstall",
    "TestResults",
    "TestRewritten",
    "TestSessions",
    "TestTitles",
    "TestTurns",
    "TestUsage",
]
FIXTURES = Path(__file__).parents[2] / "sessions" / "runtimes" / "fixtures"


@pytest.fixture(params=all_runtimes(), ids=lambda runtime: runtime.name)
def fixture(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Fixture:
    return fixture_of(request.param, FIXTURES / request.param.name, tmp_path, monkeypatch)


def test_the_runtime_of_a_transcript_and_of_a_process_is_found(fixture, tmp_path):
    for path in fixture.folder.glob("*.jsonl"):
        with path.open("rb") as file:
            assert runtime_of(file.fileno()) is fixture.runtime
    environ = {"HOME": str(tmp_path), fixture.runtime.OWN_ID_VARIABLE: "one-session"}
    assert running_session(environ, os.getpid()) == (fixture.runtime, "one-session")
    assert running_session({"HOME": str(tmp_path)}, os.getpid()) == (None, "")
    assert not hasattr(fixture.runtime, "SETTINGS")  # a part that no runtime has


def test_every_runtime_of_the_table_has_a_fixture_folder_and_every_folder_a_runtime():
    assert sorted(path.name for path in FIXTURES.iterdir()) == sorted(
        one.name for one in all_runtimes()
    )


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(
        ValueError,
        match="unknown transcript format 'emacs': choose one of agent-sdk, pi, codex, qwen, copilot, opencode, kilo, gemini, droid, cline, openclaw, omp, kimi, hermes, atif",
    ):
        runtime("emacs")
