"""After a standstill, the next prompt reports any change, as if the cursors had been read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from git_scene import git, repository
from hooks_scene import PlainUser, told
from records import append, assistant, exchange, new_id, user, write

HIDDEN = new_id()


@pytest.fixture
def quiet(plain):
    """A user who was told of one session, and of another one that is excluded; since then nothing was new."""
    plain.config(f"sessions: {{{HIDDEN}: {{ignore: true}}}}\n")
    paths = [
        plain.session(*exchange("hello", "hi")),
        write(plain.project_dir / f"{HIDDEN}.jsonl", *exchange("in secret", "y")),
    ]
    for path in paths:
        os.utime(path, (time.time() - 60, time.time() - 60))
    assert "hello" in told(plain.run())
    stand_still(plain)
    return plain


def stand_still(plain: PlainUser) -> None:
    """Prompts until nothing is looked at any more."""
    for _ in range(3):
        assert plain.run() == b""
    assert state(plain).read_bytes().startswith(b'{" standstill": [')


def state(plain: PlainUser) -> Path:
    return plain.state_dir / "cursors" / f"{plain.session_id}.json"


def test_what_is_added_to_a_transcript_is_told(quiet):
    path = next(
        one
        for one in quiet.project_dir.glob("*.jsonl")
        if one.stem not in (HIDDEN, quiet.session_id)
    )
    append(path, *exchange("how is it going?", "Fine."))
    os.utime(path, (time.time() - 30, time.time() - 30))
    assert "how is it going?" in told(quiet.run())
    stand_still(quiet)


def test_a_session_that_has_begun_is_told(quiet):
    quiet.session(*exchange("a new one", "yes"))
    assert "a new one" in told(quiet.run())


def test_a_session_that_is_not_excluded_any_more_is_told(quiet):
    quiet.config("sessions: {}\n")
    assert "in secret" in told(quiet.run())


def test_a_session_of_before_is_told_where_it_is_heard_of_further_back(plain):
    three_hours_ago = time.time() - 3 * 3600
    path = plain.session(*exchange("mend the fence", "1", at=three_hours_ago))
    os.utime(path, (three_hours_ago, three_hours_ago))
    plain.config("first_sight_hours: 1\n")
    stand_still(plain)
    plain.config("first_sight_hours: 48\n")
    assert "mend the fence" in told(plain.run(prompt="why mend the fence?"))


def test_what_was_told_is_told_again_where_the_cursors_are_gone(quiet):
    state(quiet).unlink()
    assert "hello" in told(quiet.run())


def test_another_value_in_its_place_costs_nothing_but_time(quiet):
    content = json.loads(state(quiet).read_text())
    for wrong in (5, [], [1], ["x", 5], [1, "/nowhere"], {"a": 1}):
        state(quiet).write_text(json.dumps({**content, " standstill": wrong}))
        stand_still(quiet)


def test_a_branch_that_was_switched_is_told(plain, tmp_path):
    app = repository(tmp_path / "app", src="x = 1\n")
    own = plain.project_dir / f"{plain.session_id}.jsonl"
    write(own, user("go on", cwd=str(app)), assistant("Yes.", cwd=str(app)))
    plain.session(*exchange("hello", "hi", cwd=str(app)))
    for path in plain.project_dir.glob("*.jsonl"):
        os.utime(path, (time.time() - 60, time.time() - 60))
    run = plain.run
    plain.run = lambda: run(cwd=str(app))
    assert "hello" in told(plain.run())
    stand_still(plain)
    git(app, "switch", "-q", "-c", "fix")
    assert "! branch is now fix" in told(plain.run())
