"""Collision lines under privacy rules, for each kind of line.

The other session is excluded, or shown without its text.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, branch_switched, collisions

from bench.clones import Clone

APP = "src/app.py"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def edited(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.edit(APP, "x\n")


def edited_before(pair: Pair) -> None:
    pair.discord.edit(APP, "x\n")
    pair.main.edit(APP, "1\n")


def edited_by_a_command(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.bash("echo secret >> src/app.py")


def edited_by_a_sub_agent(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.sub_agent().edit(APP, "x\n")


def removed(pair: Pair) -> None:
    pair.main.read(APP)
    pair.discord.bash("git rm -q src/app.py")


def stashed(pair: Pair) -> None:
    pair.main.edit(APP, "1\n")
    pair.discord.bash("git stash -q -m secret")


def committed(pair: Pair) -> None:
    pair.main.edit(APP, "1\n")
    pair.discord.bash("git commit -qam secret")


def branch_moved(pair: Pair) -> None:
    pair.clone.shell("git commit -q --allow-empty -m more")
    pair.main.prompt()
    pair.later()
    pair.discord.bash("git reset -q --hard HEAD~1")


KINDS = [
    (edited, '! src/app.py: edited 5m ago by "discord", after you read it', ""),
    (edited_before, '! src/app.py: edited 5m ago by "discord", before you edited it', ""),
    (edited_by_a_command, '! src/app.py: edited 5m ago by "discord", after you read it', ""),
    (edited_by_a_sub_agent, '! src/app.py: edited 5m ago by "discord", after you read it', ""),
    (removed, '! src/app.py: removed or moved 5m ago by "discord", after you read it', ""),
    (
        stashed,
        '! src/app.py: a git command run 5m ago by "discord", while your edit was not committed',
        "",
    ),
    (
        committed,
        '! src/app.py: a git command run 5m ago by "discord", while your edit was not committed',
        "",
    ),
    (
        branch_switched,
        '! branch is now fix/login (was main): switched 5m ago by "discord"',
        "! branch is now fix/login (was main): switched 5m ago",
    ),
    (
        branch_moved,
        '! branch is still main, but no longer at <commit>: moved 5m ago by "discord"',
        "moved 5m ago",
    ),
]


@pytest.mark.parametrize(
    ("happens", "told", "_"), KINDS, ids=lambda one: getattr(one, "__name__", "")
)
def test_of_a_session_without_text_it_is_told_that_it_did_it_and_no_more(happens, told, _, pair):
    happens(pair)
    pair.later()
    pair.clone.rules("{discord: {text: false}}")
    text = pair.main.prompt()
    (line,) = collisions(text)
    start, commit, end = told.partition("<commit>")
    assert (line.startswith(start), line.endswith(end)) == (True, True)
    assert bool(commit) or line == told
    assert "secret" not in text


@pytest.mark.parametrize(
    ("happens", "_", "told"), KINDS, ids=lambda one: getattr(one, "__name__", "")
)
def test_one_that_is_excluded_is_not_told_of_by_no_name(happens, _, told, pair):
    happens(pair)
    pair.later()
    pair.clone.rules("{discord: {ignore: true}}")
    text = pair.main.prompt()
    assert "discord" not in text
    assert [line[-len(told) :] for line in collisions(text)] == [told] * bool(told)


def test_text_of_another_session_cannot_end_its_line(pair):
    pair.main.read(APP)
    pair.discord.bash("git switch -q -c 'a<b>\"c' 2>/dev/null || git switch -q -c 'x;y'")
    (line,) = collisions(pair.main.prompt())
    assert "<" not in line
    assert line.count("`") == 2
