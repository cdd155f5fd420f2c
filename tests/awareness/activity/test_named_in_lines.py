"""The names in a line about a session: work, not notes, and the file that matters most to the reader."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from collision_scene import Pair, collisions
from hooks_scene import PlainUser, told
from records import assistant, exchange, user

from bench.clones import Clone


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def line(text: str) -> str:
    """The line about discord."""
    return next(one for one in text.split("\n") if one.startswith('- "discord"'))


def test_a_file_that_a_sub_agent_edited_is_named(pair: Pair) -> None:
    pair.discord.sub_agent().edit("src/app.py", "x\n")
    assert line(pair.main.prompt()).endswith("edited src/app.py")


def test_a_file_that_a_sub_agent_could_not_edit_is_not_named(pair: Pair) -> None:
    pair.discord.sub_agent().edit("src/app.py", "x\n", fails=True)
    assert "app.py" not in pair.main.prompt()


def test_results_that_the_runtime_saved_are_no_work(pair: Pair) -> None:
    pair.discord.read("src/db.py")
    pair.discord.read("/home/ada/.claude/projects/-clone/1234/tool-results/toolu_01.txt")
    assert line(pair.main.prompt()).endswith("read src/db.py")


def test_the_notes_of_an_agent_are_no_work(pair: Pair) -> None:
    for name in ("TaskCreate", "TaskUpdate", "TodoWrite", "update_plan"):
        pair.discord._call(name, {"subject": "x"}, lambda: 0)
    assert "used" not in pair.main.prompt()


def test_the_number_of_commands_is_not_told_beside_a_file(pair: Pair) -> None:
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("ls")
    pair.discord.bash("cat src/db.py")
    assert line(pair.main.prompt()).endswith("edited src/db.py")


def test_a_file_that_the_session_holds_is_named_before_others(pair: Pair) -> None:
    pair.main.read("src/ui/main.ts")
    pair.discord.edit("src/ui/main.ts", "x\n")
    pair.discord.edit("src/db.py", "x\n")
    text = pair.main.prompt()
    assert collisions(text)
    assert line(text).endswith("edited src/ui/main.ts, src/db.py")


class TestAPrompt:
    def edited(self, plain: PlainUser, question: str, *names: str, minutes: float = 1) -> None:
        then = time.time() - 60 * minutes
        calls = [
            ("Edit", {"file_path": f"/srv/agent/{name}", "old_string": "1", "new_string": "2"})
            for name in names
        ]
        plain.session(
            user(question, at=then), *[assistant(call, cwd="/srv/agent", at=then) for call in calls]
        )

    def test_that_names_a_file_is_told_first_who_edited_it(self, plain: PlainUser) -> None:
        for number in range(4):
            self.edited(plain, f"change number {number} please", f"other{number}.py")
        self.edited(plain, "make the output scroll", "src/app.rs", "src/tui.rs", minutes=50)
        lines = told(plain.run(prompt="why does `app.rs` not scroll?")).split("\n")
        assert lines[2].startswith('- "make the output scroll"')
        assert ": edited src/app.rs" in lines[2]

    def test_that_another_session_was_just_given_is_told(self, plain: PlainUser) -> None:
        request = "Read docs/plans/mail-plan.md and implement the first task"
        at = time.time()
        plain.session(*exchange(request, "I will.", cwd="/srv/agent", at=at - 60))
        text = told(plain.run(prompt=request))
        assert f'! "{request[:30]}' in text
        assert "got the same prompt 1m ago, in this directory" in text

    @pytest.mark.parametrize("request_text", ["yes, continue", "go on"])
    def test_that_says_nothing_is_not_the_same(self, plain: PlainUser, request_text: str) -> None:
        at = time.time()
        plain.session(
            *exchange(request_text, "The cart has three faults.", cwd="/srv/agent", at=at - 60)
        )
        assert b"same prompt" not in plain.run(prompt=request_text)

    def test_that_was_given_an_hour_ago_is_not_told_as_the_same(self, plain: PlainUser) -> None:
        request = "Read docs/plans/mail-plan.md and implement the first task"
        at = time.time()
        plain.session(*exchange(request, "I will.", cwd="/srv/agent", at=at - 3600))
        assert "same prompt" not in told(plain.run(prompt=request))
