"""The replay of histories from a repository with checkpoints, and the sheet of its updates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checkpoint_branch import BRANCH, checkpoint, git
from records import assistant, codex_exchange, codex_line, line, lines, stamp, user

from bench.research.updates.replay import histories
from bench.research.updates.sheet import GRADES, LABELS, UNCOUNTED, kind_of, neutral, share
from bench.scenes import REPOSITORY

HOME = "/Users/ada/app"
START = 1_770_000_000
READER = "01a200e6-e7e3-7652-a134-a93db749bb9f"


def talk(*records: dict[str, object]) -> bytes:
    return b"".join(line({**one, "cwd": HOME, "gitBranch": "work"}) for one in records)


def at(seconds: int) -> dict[str, str]:
    return {"timestamp": stamp(START + seconds)}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a checkpoint of Claude Code's session `writer`, which edits cart.ts."""
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
    checkpoint(tmp_path, "a1b2c3d4e5f6", writer=writer)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Time\n\nEntire-Checkpoint: a1b2c3d4e5f6")
    return tmp_path


def updates(repository: Path, homes: Path) -> dict[tuple[str, int], str]:
    (history,) = histories(repository / ".git", homes)
    return {(one.session, one.number): one.text for one in history.play(REPOSITORY)}


def test_a_prompt_is_told_what_another_session_had_done_by_then_and_no_more(
    repository: Path, tmp_path: Path
) -> None:
    reader = talk(user("Explain the cart", **at(100)), assistant("It is a list.", **at(110)))
    checkpoint(repository, "b1b2c3d4e5f6", reader=reader)

    told = updates(repository, tmp_path / "homes")

    assert "cart.ts" in told["reader", 1]
    assert "cache" not in told["reader", 1]
    written = tmp_path / "homes/ada/app/cart.ts"
    assert written.read_text() == "two\n"
    assert START + 20 <= os.stat(written).st_mtime <= START + 21


def codex_session() -> bytes:
    return lines(
        codex_line("session_meta", {"id": READER, "cwd": HOME}, at=START + 99),
        *codex_exchange("Explain the cart", "It is a list.", at=START + 100),
        *codex_exchange("Go on", "It has prices.", at=START + 150),
    )


def pi_session() -> bytes:
    said = [("user", "Explain the cart"), ("assistant", "It is a list."), ("user", "Go on")]
    header = {"type": "session", "version": 3, "id": READER, "cwd": HOME, **at(99)}
    parents = [None, "0a000000", "0a000001"]
    return lines(
        header,
        *[
            {
                "type": "message",
                "id": f"0a00000{number}",
                "parentId": parents[number],
                **at(100 + 10 * number),
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
            for number, (role, text) in enumerate(said)
        ],
    )


@pytest.mark.parametrize(
    ("agent", "session"), [("Codex", codex_session()), ("Pi", pi_session())], ids=["codex", "pi"]
)
def test_a_session_of_another_runtime_is_told_once_too(
    agent: str, session: bytes, repository: Path, tmp_path: Path
) -> None:
    checkpoint(repository, "b1b2c3d4e5f6", agent, **{READER: session})

    told = updates(repository, tmp_path / "homes")

    assert "cart.ts" in told[READER, 1]
    assert (READER, 2) not in told


def test_a_sub_agent_of_codex_gets_no_prompt(repository: Path, tmp_path: Path) -> None:
    meta = {"id": READER, "cwd": HOME, "source": {"subagent": {"other": "guardian"}}}
    session = lines(
        codex_line("session_meta", meta, at=START + 99),
        *codex_exchange("Explain the cart", "It is a list.", at=START + 100),
    )
    checkpoint(repository, "b1b2c3d4e5f6", "Codex", **{READER: session})

    assert not updates(repository, tmp_path / "homes")


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
