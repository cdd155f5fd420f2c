"""Collisions over the work of sub-agents, which have transcripts beside their session's."""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Clone


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def test_what_a_sub_agent_edits_its_session_has_edited(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.sub_agent().edit("src/app.py", "x\n")
    pair.later()
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited 5m ago by "discord", after you read it'
    ]
    pair.discord.say("Go on.")
    assert collisions(pair.main.prompt()) == []


def test_an_edit_by_a_workflows_agent_is_its_sessions(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.sub_agent("workflows/wf_1a2b").edit("src/app.py", "x\n")
    pair.later()
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited 5m ago by "discord", after you read it'
    ]


def test_what_it_does_later_is_told_later(pair: Pair) -> None:
    agent = pair.discord.sub_agent()
    agent.edit("src/db.py", "x\n")
    pair.main.read("src/app.py")
    assert collisions(pair.main.prompt()) == []
    agent.edit("src/app.py", "x\n")
    pair.discord.say("Go on.")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]


def test_an_edit_that_was_refused_to_it_is_none(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.sub_agent().edit("src/app.py", "x\n", fails=True)
    assert collisions(pair.main.prompt()) == []


def test_what_a_sub_agent_of_this_session_touched_this_session_has_in_hand(pair: Pair) -> None:
    pair.main.sub_agent().edit("src/app.py", "1\n")
    pair.discord.edit("src/app.py", "x\n")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you edited it'
    ]


def test_a_branch_that_a_sub_agent_of_this_session_switched_is_not_told(pair: Pair) -> None:
    pair.main.sub_agent().bash("git switch -q -c fix/login")
    pair.discord.bash("git status")
    assert collisions(pair.main.prompt()) == []
    assert collisions(pair.discord.prompt()) == [
        '! branch is now fix/login (was main): `git switch -q -c fix/login` run just now by "main"'
    ]


def test_what_did_not_fit_is_told_with_the_next_prompt(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.sub_agent().edit("src/app.py", "x\n")
    assert collisions(pair.main.prompt(limit=60)) == []
    assert len(collisions(pair.main.prompt())) == 1


def test_of_an_excluded_session_none_is_told_of(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.sub_agent().edit("src/app.py", "x\n")
    pair.clone.rules("{discord: {ignore: true}}")
    assert pair.main.prompt() == ""


def test_where_its_transcript_cannot_be_read_the_rest_is_told(pair: Pair) -> None:
    pair.main.read("src/app.py")
    agent = pair.discord.sub_agent()
    agent.path.unlink()
    agent.path.symlink_to("/dev/zero")
    (agent.path.parent / "agent-0.jsonl").write_text("{\n[1]\n")
    pair.discord.edit("src/app.py", "x\n")
    assert len(collisions(pair.main.prompt())) == 1


def test_what_a_running_sub_agent_edits_is_told_before_its_session_writes_anything(
    pair: Pair,
) -> None:
    """A session that waits for its sub-agent, perhaps for many minutes, writes nothing meanwhile."""
    pair.main.read("src/app.py")
    agent = pair.discord.sub_agent()
    told = [pair.main.prompt(), pair.main.prompt()]
    agent.edit("src/app.py", "x\n")
    told += [pair.main.prompt(), pair.main.prompt()]
    assert [collisions(text) for text in told] == [
        [],
        [],
        ['! src/app.py: edited just now by "discord", after you read it'],
        [],
    ]
    assert "- discord" not in told[2]
    pair.later()
    agent.edit("src/app.py", "y\n")
    assert (
        pair.main.before_edit("src/app.py")
        == '! src/app.py: edited just now by "discord", before you edited it'
    )
