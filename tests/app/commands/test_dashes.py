"""Words that begin with a dash, and commands under other names: errors say what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import exchange
from store_scene import StoreUser

from session_memory.cli import ALIASES


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    person = StoreUser(tmp_path_factory.mktemp("home"))
    person.session("npm", *exchange("npm install --legacy-peer-deps fails", "yes"))
    return person


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["why", "-dash.py:1"], "why -- -dash.py:1"),
        (["search", "--legacy-peer-deps"], "search -- --legacy-peer-deps"),
        (["search", "npm", "--legacy-peer-deps"], "search npm -- --legacy-peer-deps"),
        (["errors", "-Wall"], "errors -- -Wall"),
        (["remember", "--no-verify", "is bad"], "remember -- --no-verify 'is bad'"),
    ],
)
def test_a_word_that_begins_with_a_dash_is_answered_with_the_command_that_takes_it(
    person: StoreUser, words: list[str], command: str
) -> None:
    done = person.run(*words)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"to pass it as a word, put -- before it: session-memory {command}\n"
    )


def test_behind_two_dashes_it_is_a_word(person: StoreUser, tmp_path: Path) -> None:
    assert "--**legacy**" in person.run("search", "--", "--legacy-peer-deps").stdout
    assert "-dash.py" in person.run("why", "--", "-dash.py:1", cwd=tmp_path).stderr


def test_a_mistyped_option_and_a_command_without_words_are_not_answered_so(
    person: StoreUser,
) -> None:
    for words in (
        ["search", "x", "--limt", "3"],
        ["costs", "--foo"],
        ["host", "--foo"],
        ["search", "x", "--limit", "y"],
    ):
        assert "put --" not in person.run(*words).stderr, words


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_named_as_it_was_typed(person: StoreUser, alias: str) -> None:
    words = ["1", "--nothing"] if alias == "show" else ["--nothing"]
    said = person.run(alias, *words).stderr
    assert f"session-memory {alias}: error: unrecognized arguments: --nothing" in said
    assert said.startswith(f"usage: session-memory {alias} ")
