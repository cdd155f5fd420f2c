"""The text with an edit's result: others' changes to the file since the last prompt, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Clone
from session_memory.awareness.activity import actions
from session_memory.common.system.deadline import DeadlineError

APP = "src/app.py"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def test_nothing_is_told_of_a_file_that_nobody_else_touched(pair: Pair) -> None:
    pair.discord.edit("src/db.py", "x\n")
    assert pair.main.before_edit(APP) == ""


def test_an_edit_of_another_after_this_session_read_the_file_is_told(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")
    pair.later(2)
    assert (
        pair.main.before_edit(APP) == '! src/app.py: edited 2m ago by "discord", after you read it'
    )


def test_an_edit_of_another_is_told_to_who_edits_the_file_without_having_touched_it_before(
    pair: Pair,
) -> None:
    pair.discord.edit(APP, "x\n")
    pair.later(2)
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited 2m ago by "discord", before you edited it'
    )


def test_it_is_told_once_and_again_for_another_edit(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n")
    assert pair.main.before_edit(APP)
    pair.main.edit(APP, "1\n")
    assert pair.main.before_edit(APP) == ""
    pair.main.edit(APP, "1\n")
    pair.later()
    pair.discord.edit(APP, "y\n")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", after you edited it'
    )
    assert pair.main.before_edit(APP) == ""


def test_a_refused_edit_that_was_told_is_not_told_again_after_reading_the_file(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")
    assert "after you read it" in pair.main.before_edit(APP)
    pair.main.edit(APP, "1\n", fails=True)
    pair.main.read(APP)
    assert pair.main.before_edit(APP) == ""


def test_a_call_from_before_the_prompt_that_was_written_after_it_is_told(pair: Pair) -> None:
    pair.main.read(APP)
    pair.later(1)
    pair.discord.edit("src/db.py", "x\n")
    assert pair.main.prompt()
    pair.later(-0.5)
    telegram = pair.clone.session("telegram")
    telegram.edit(APP, "x\n")
    pair.later(2)
    assert (
        pair.main.before_edit(APP) == '! src/app.py: edited 2m ago by "telegram", after you read it'
    )
    assert pair.main.before_edit(APP) == ""


@pytest.mark.parametrize("is_prompt", [True, False])
def test_edits_are_told_after_a_clock_was_ahead(pair: Pair, is_prompt: bool) -> None:
    pair.main.read(APP)
    pair.later(60)
    pair.discord.edit(APP, "x\n")
    assert pair.main.prompt() if is_prompt else pair.main.before_edit(APP)
    pair.later(-55)
    pair.main.read(APP)
    pair.later(1)
    pair.discord.edit(APP, "y\n")
    pair.later(2)
    assert pair.main.before_edit(APP).startswith("! src/app.py: edited ")
    assert pair.main.before_edit(APP) == ""
    pair.later(1)
    pair.discord.edit(APP, "z\n")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", after you read it'
    )


def test_what_was_told_with_a_call_is_not_told_with_the_next_prompt(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n")
    assert pair.main.before_edit(APP)
    pair.main.edit(APP, "1\n")
    assert collisions(pair.main.prompt()) == []


def test_an_edit_behind_the_one_that_was_told_is_told_with_the_next_prompt(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n")
    assert pair.main.before_edit(APP)
    pair.main.edit(APP, "1\n")
    pair.discord.edit(APP, "y\n")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you edited it'
    ]


def test_what_a_prompt_told_is_not_told_with_a_call(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")
    assert collisions(pair.main.prompt())
    assert pair.main.before_edit(APP) == ""


def test_an_edit_that_was_refused_is_none(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n", fails=True)
    assert pair.main.before_edit(APP) == ""


def test_edits_by_commands_are_told(pair: Pair) -> None:
    pair.discord.bash("sed -i s/app/application/ src/app.py")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", before you edited it'
    )


def test_a_stash_that_took_what_this_session_had_not_committed_is_told_once(pair: Pair) -> None:
    pair.main.edit(APP, "1\n")
    pair.discord.bash("git stash")
    told = pair.main.before_edit(APP)
    assert (
        told
        == '! src/app.py: `git stash` run just now by "discord", while your edit was not committed'
    )
    assert pair.main.before_edit(APP) == ""
    assert collisions(pair.main.prompt()) == []


def test_a_file_whose_directory_was_moved_is_told(pair: Pair) -> None:
    pair.main.read("src/ui/main.ts")
    pair.discord.bash("git mv src/ui src/web")
    assert pair.main.before_edit("src/ui/main.ts") == (
        '! src/ui/main.ts: removed or moved just now by "discord", after you read it'
    )


def test_each_agent_of_the_session_is_told(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n")
    told = [pair.main.before_edit(APP, agent=agent) for agent in ("", "a1", "a2")]
    assert [text != "" for text in told] == [True] * 3
    assert [pair.main.before_edit(APP, agent=agent) for agent in ("", "a1", "a2")] == [""] * 3


def test_what_a_sub_agent_was_told_its_session_is_told_too(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")
    assert pair.main.before_edit(APP, agent="a1")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]


def test_the_call_at_hand_may_be_in_the_transcript_already(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")
    pair.main.open_call("Edit", {"file_path": str(pair.main.worktree / APP)}, "toolu_1")
    assert "after you read it" in pair.main.before_edit(APP, call_id="toolu_1")


def test_a_call_that_waits_for_permission_is_told_once_it_is_over(pair: Pair) -> None:
    pair.clone.write(pair.discord.worktree / APP, "1\n")
    pair.later()
    pair.discord.open_call("Edit", {"file_path": str(pair.discord.worktree / APP)}, "toolu_1")
    pair.later(1)
    assert pair.main.before_edit(APP) == ""
    pair.clone.write(pair.discord.worktree / APP, "x\n")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", before you edited it'
    )


def test_what_a_sub_agent_of_another_session_edited_is_told_as_of_that_session(pair: Pair) -> None:
    agent = pair.discord.sub_agent()
    assert pair.main.before_edit(APP) == ""
    agent.edit(APP, "x\n")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", before you edited it'
    )
    assert pair.main.before_edit(APP) == ""
    agent.edit(APP, "y\n")
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", before you edited it'
    )


def test_a_sub_agent_is_told_by_what_it_did_itself(pair: Pair) -> None:
    pair.main.read(APP)
    agent = pair.main.sub_agent()
    agent.edit(APP, "1\n")
    pair.discord.edit(APP, "x\n")
    name = agent.path.stem.removeprefix("agent-")
    assert (
        pair.main.before_edit(APP, agent=name)
        == '! src/app.py: edited just now by "discord", after you edited it'
    )
    assert (
        pair.main.before_edit(APP, agent="another")
        == '! src/app.py: edited just now by "discord", before you edited it'
    )


def test_an_edit_of_a_sub_agent_that_could_not_be_read_in_time_is_told_with_the_next_call(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(*_: object) -> None:
        monkeypatch.undo()
        raise DeadlineError

    agent = pair.discord.sub_agent()
    pair.later(2)
    agent.edit(APP, "x\n")
    monkeypatch.setattr(actions, "actions_of", hang)
    assert pair.main.before_edit(APP) == ""
    assert (
        pair.main.before_edit(APP)
        == '! src/app.py: edited just now by "discord", before you edited it'
    )
