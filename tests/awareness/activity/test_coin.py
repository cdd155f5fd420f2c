"""The coin of `proof.withhold`: what it holds back, what never, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, collisions, play

from bench.clones import Actor, Clone
from session_memory.awareness.activity.collisions import _coin as coin
from session_memory.awareness.activity.collisions._working_set import CollisionState
from session_memory.awareness.activity.session_state import KnownState
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.transcripts.lines import LARGE_PRIME, id_checksum

APP = "src/app.py"
ALWAYS = Settings({"proof": {"withhold": 1.0}})


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def committed(pair: Pair) -> None:
    """The other session edits a file that this one has read, and commits it."""
    play(
        pair, ["main read", "later 1", "discord edit", "discord $ git commit -qam done", "later 1"]
    )


def draws(actor: Actor) -> list[int]:
    state = KnownState(actor._own.cursor_file).of(actor.id).as_reported()
    return [draw.outcome for draw in CollisionState.load(state.collisions or "", 0.0).draws]


def test_a_line_about_a_committed_edit_is_held_back_until_the_next_prompt(pair: Pair) -> None:
    committed(pair)
    assert pair.main.prompt(settings=ALWAYS) == ""
    assert draws(pair.main) == [coin.HELD]
    pair.later()
    told = pair.main.prompt(settings=ALWAYS)
    assert collisions(told) == ['! src/app.py: edited 6m ago by "discord", after you read it']
    assert "discord" in told.splitlines()[-1]  # its report was held back with the line
    assert draws(pair.main) == [coin.RELEASED]
    assert collisions(pair.main.prompt(settings=ALWAYS)) == []


def test_it_waits_with_calls_too_unless_the_file_is_edited_again(pair: Pair) -> None:
    committed(pair)
    assert pair.main.prompt(settings=ALWAYS) == ""
    assert pair.main.before_edit(APP) == ""
    pair.discord.edit(APP, "y\n")
    assert collisions(pair.main.before_edit(APP)) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]


@pytest.mark.parametrize(
    "steps",
    [
        ["main read", "later 1", "discord edit"],
        ["main edit", "later 1", "discord edit"],
        ["main read", "discord edit", "discord $ git commit -qam done", "later 1", "discord edit"],
        ["main read", "discord edit", "discord $ git add -A"],
        ["main read", "later 1", "discord $ git rm -q src/app.py", "discord $ git commit -qm gone"],
        ["main edit", "later 1", "discord $ git stash -q"],
        ["main edit", "later 1", "discord $ git switch -q -c other"],
    ],
)
def test_nothing_that_uncommitted_work_hangs_on_is_held_back(pair: Pair, steps: list[str]) -> None:
    play(pair, [*steps, "later 1"])
    assert collisions(pair.main.prompt(settings=ALWAYS))
    assert coin.HELD not in draws(pair.main)


def test_a_file_in_another_worktree_may_be_held_back(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    clone.shell("git worktree add -q ../other -b other")
    main = clone.session("main")
    other = clone.session("discord", clone.root.parent / "other")
    main.prompt()
    main.edit(APP, "1\n")
    other.edit(APP, "x\n")
    clone.now += 60
    assert main.prompt(settings=ALWAYS) == ""
    assert draws(main) == [coin.HELD]
    assert "in worktree other" in main.prompt(settings=ALWAYS)


def test_without_the_setting_nothing_is_drawn(pair: Pair) -> None:
    committed(pair)
    assert collisions(pair.main.prompt())
    assert draws(pair.main) == []


def test_a_line_that_is_drawn_and_told_is_noted_too(pair: Pair) -> None:
    committed(pair)
    assert collisions(pair.main.prompt(settings=Settings({"proof": {"withhold": 1e-9}})))
    assert draws(pair.main) == [coin.TOLD]


def test_the_draw_is_that_of_a_fair_coin() -> None:
    drawn = [
        id_checksum(
            f"session-{number % 40} edited other-{number % 7} /srv/{number % 90}.py {1.79e9 + number * 61.5}"
        )
        * coin._MIXED
        % LARGE_PRIME
        / LARGE_PRIME
        for number in range(20_000)
    ]
    for share in (0.1, 0.3, 0.5):
        assert abs(sum(one < share for one in drawn) / len(drawn) - share) < 0.01
