"""What `search` shows, in which order, and what a hit lacks."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from records import assistant, exchange, user
from store_scene import MONDAY, StoreUser


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    person = StoreUser(tmp_path_factory.mktemp("home"))
    edit = ("Edit", {"file_path": "/srv/agent/timer.ts", "old_string": "a", "new_string": "b"})
    person.session(
        "one",
        user("Why does the timer lose its state?", at=MONDAY),
        assistant(edit, at=MONDAY + 1),
        assistant("The timer keeps its state in memory only.", at=MONDAY + 2),
        user("And the other states?", at=MONDAY + 3),
        assistant("They are kept as well.", at=MONDAY + 4),
    )
    person.run("process")
    person.run("remember", "The state of the timer belongs into the database")
    return person


def test_decisions_come_before_hits_and_episodes_after_them(person: StoreUser) -> None:
    said = person.run("search", "timer state").stdout
    remembered, hit, episode = (
        said.find(words) for words in ("belongs into the database", "**timer**", "Asked: ")
    )
    assert -1 < remembered < hit < episode, said


def test_a_hit_says_which_words_are_missing_in_it(person: StoreUser) -> None:
    lines = person.run("search", "timer states database").stdout.splitlines()
    missing = {
        lines[place - 1].strip(): line.partition("; ")[2]
        for place, line in enumerate(lines)
        if ", user" in line
    }
    assert missing["Why does the **timer** lose its **state**?"] == "without database", lines


def test_a_single_word_is_never_missing(person: StoreUser) -> None:
    assert "without" not in person.run("search", "state").stdout


def test_an_export_to_a_dash_goes_to_stdout(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "home")
    person.session("one", *exchange("plan the trip", "done"))
    for words in (("export", "one", "--out", "-"), ("page", "--export", "one", "--out", "-")):
        done = person.run(*words, cwd=tmp_path)
        assert (done.returncode, "plan the trip" in done.stdout) == (0, True), words
    assert person.run("proof", "--svg", "-", cwd=tmp_path).stdout.startswith("<svg")
    assert not (tmp_path / "-").exists()


def test_the_command_of_a_private_hit_shows_it(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "home")
    person.session("one", *exchange("plan the secret trip", "done", cwd=str(tmp_path)))
    person.config(f"projects: {{{tmp_path}: {{quote: false}}}}\n")
    [command] = {
        line.strip()
        for line in person.run("search", "secret trip", "--include-private").stdout.splitlines()
        if " read " in line
    }
    assert "plan the secret trip" in person.run(*shlex.split(command)[1:]).stdout
