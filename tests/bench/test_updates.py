"""The replay of histories from a repository with checkpoints, and the sheet of its updates."""

from __future__ import annotations

import os
from pathlib import Path

from checkpoint_branch import BRANCH, checkpoint, git
from records import assistant, line, stamp, user

from bench.research.updates.replay import histories
from bench.research.updates.sheet import GRADES, LABELS, UNCOUNTED, kind_of, neutral, share
from bench.scenes import REPOSITORY

HOME = "/Users/ada/app"
START = 1_770_000_000


def talk(*records: dict[str, object]) -> bytes:
    return b"".join(line({**one, "cwd": HOME, "gitBranch": "work"}) for one in records)


def at(seconds: int) -> dict[str, str]:
    return {"timestamp": stamp(START + seconds)}


def test_a_prompt_is_told_what_another_session_had_done_by_then_and_no_more(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "work")
    (tmp_path / "cart.ts").write_text("one\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "Begin")
    git(tmp_path, "branch", BRANCH)
    edit = {"type": "tool_use", "id": "t1", "name": "Edit"}
    asked = {
        **edit,
        "input": {"file_path": f"{HOME}/cart.ts", "old_string": "one", "new_string": "two"},
    }
    done = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    writer = talk(
        user("Let people choose a time", **at(0)),
        assistant(asked, **at(20)),
        user(done, **at(21)),
        user("Now drop the cache", **at(200)),
        assistant("Dropped it.", **at(210)),
    )
    reader = talk(user("Explain the cart", **at(100)), assistant("It is a list.", **at(110)))
    checkpoint(tmp_path, "a1b2c3d4e5f6", writer=writer, reader=reader)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Time\n\nEntire-Checkpoint: a1b2c3d4e5f6")

    (history,) = histories(tmp_path / ".git", tmp_path / "homes")
    told = {(one.session, one.number): one.text for one in history.play(REPOSITORY)}

    assert "cart.ts" in told["reader", 1]
    assert "cache" not in told["reader", 1]
    written = tmp_path / "homes/ada/app/cart.ts"
    assert written.read_text() == "two\n"
    assert START + 20 <= os.stat(written).st_mtime <= START + 21


def test_updates_of_both_programs_have_one_form() -> None:
    old = '- codex: Fix it (2m ago, 3 messages): "Fix it" -> ran 1 command\n! a.ts: codex: Fix it edited it 2m ago, after you read it'
    new = '- "Fix it" (Codex, 2m ago, 3 messages): "Fix it", ran 1 command\n! a.ts: edited 2m ago by "Fix it" (Codex), after you read it'
    assert (
        neutral(old)[1]
        == neutral(new)[1]
        == "collision a.ts | Fix it | edited 2m ago | after you read it"
    )
    assert neutral(old)[0].startswith("session Fix it | Codex | 2m ago, 3 messages | ")
    assert neutral(new)[0].startswith("session Fix it | Codex | 2m ago, 3 messages | ")
    assert kind_of(old.split("\n")[1]) == "after you read"


def test_a_share_has_an_interval_of_95_percent() -> None:
    assert share(75, 100) == "75 = 75% (66% to 82%)"


def test_every_published_label_is_one_that_the_rules_name() -> None:
    rows = [row.split("\t") for row in LABELS.read_text().splitlines()[1:]]
    assert {row[5] for row in rows if row[4] == "update"} <= {*GRADES, *UNCOUNTED}
    assert {row[5].partition(": ")[0] for row in rows if row[4] != "update"} <= {
        "true",
        "false",
        *UNCOUNTED,
    }
