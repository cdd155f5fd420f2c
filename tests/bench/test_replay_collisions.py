"""Collisions and conflicts in a public history: what is counted, and what kills a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checkpoint_branch import BRANCH, checkpoint, git
from records import assistant, lines, user

from bench import merges
from bench.research.replay_collisions import Counts, collision_row, conflict_row, main

START = 1_780_000_000.0
CLONE = "/home/ann/harbour"


def used(session: str, minute: float, tool: str, name: str) -> list[dict[str, Any]]:
    """A tool that read or edited a file, and its result."""
    where = {"cwd": CLONE, "sessionId": session, "gitBranch": "work"}
    at = START + 60 * minute
    given = {"file_path": f"{CLONE}/{name}", "old_string": "shines", "new_string": "blinks"}
    call = assistant((tool, given), at=at, **where)
    id = call["message"]["content"][0]["id"]
    return [
        call,
        user([{"tool_use_id": id, "type": "tool_result", "content": "ok"}], at=at + 1, **where),
    ]


def typed(session: str, minute: float, text: str) -> dict[str, Any]:
    return user(text, at=START + 60 * minute, cwd=CLONE, sessionId=session, gitBranch="work")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", BRANCH, ".")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Start")
    git(tmp_path, "checkout", "-q", "-b", "work")
    (tmp_path / "lamp.py").write_text("the lamp shines\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.useConfigOnly=false", "commit", "-q", "-m", "Lamp")
    reader = [
        typed("reader", 0, "look at the lamp"),
        *used("reader", 1, "Read", "lamp.py"),
        typed("reader", 10, "and now the lamp"),
        *used("reader", 11, "Edit", "lamp.py"),
    ]
    writer = [typed("writer", 2, "let the lamp blink"), *used("writer", 3, "Edit", "lamp.py")]
    checkpoint(tmp_path, "aa1111111111", reader=lines(*reader), writer=lines(*writer))
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Blink\n\nEntire-Checkpoint: aa1111111111")
    return tmp_path


def test_an_edit_by_another_session_is_an_opportunity_that_is_told(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(repository) == 0
    printed = capsys.readouterr().out
    assert (
        "collisions: 3 prompts, 1 opportunities, 1.00 of them told; 1 lines told, 1.00 right, 1.00 mattered"
        in printed
    )
    assert "controls: 0 told to a session alone, 0.00 right by chance\n  kept" in printed
    assert "conflicts: 0 merges" in printed


def test_a_feature_is_killed_by_what_the_file_says() -> None:
    good = Counts(prompts=100, due=10, hits=9, told=10, right=10, chance=1)
    assert collision_row(good).killed == []
    assert collision_row(good._replace(right=8)).killed == ["precision"]
    assert collision_row(good._replace(hits=4)).killed == ["recall"]
    assert collision_row(good._replace(prompts=2000)).killed == ["opportunity"]
    assert collision_row(good._replace(alone=1)).killed == ["control"]
    assert collision_row(good._replace(chance=3)).killed == ["control"]
    counts = merges.Counts()
    counts.pairs.update(
        {
            "merges": 100,
            merges.EARLY: 50,
            "conflicting with a moment before": 10,
            merges.REPORTED: 8,
        }
    )
    counts.files.update({merges.CONFLICTED: 9, merges.WRONG: 1})
    assert conflict_row(counts).killed == []
    counts.pairs[merges.REPORTED], counts.files[merges.WRONG] = 4, 2
    counts.reported[merges.WRONG] = 2
    assert conflict_row(counts).killed == ["precision", "recall", "control"]
