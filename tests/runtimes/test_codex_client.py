"""The real Codex: what its sub-agents do, and sessions that its user archives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clients.npm import NpmPlace
from clients.others import CODEX, Codex
from fakes.fake_responses import FakeResponses
from install_machine import REPOSITORY

COMMAND = "import sys; from session_memory.cli import main; sys.exit(main())"


def known(codex: Codex, *words: str) -> dict[str, Any]:
    """What a command of ours says as JSON."""
    environment = {**codex.environment, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--json"], env=environment, cwd=codex.project, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_a_sub_agent_is_no_session_and_one_that_is_archived_stays_the_same(tmp_path: Path, npm_place: NpmPlace) -> None:
    with FakeResponses() as model:
        codex = Codex(tmp_path, npm_place(CODEX), model)
        (codex.home / ".codex").mkdir()
        codex.run("TOOL multi_agent_v1.spawn_agent " + json.dumps({"message": "Count the lines please."}))
        assert len(list((codex.home / ".codex" / "sessions").rglob("rollout-*.jsonl"))) == 2
        [session] = known(codex, "sessions", "--all")["sessions"]
        assert known(codex, "ingest")["entries"] > 0
        codex.execute("archive", session["id"])
        assert list((codex.home / ".codex" / "archived_sessions").iterdir())
        assert known(codex, "ingest")["entries"] == 0
        assert [one["id"] for one in known(codex, "sessions", "--all")["sessions"]] == [session["id"]]
        said = known(codex, "read", session["id"])["entries"]
        assert ["Count the lines" in entry["text"] for entry in said].count(True) == 1
