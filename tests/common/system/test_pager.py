"""Long output is broken between words on a terminal, and shown in a pager if needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import terminal_scene
from records import exchange
from store_scene import StoreUser
from terminal_scene import STYLES

from session_memory.common.system._pager import broken_at_words
from session_memory.common.system.plain_output import painted, plain_text

LONG = " ".join(f"word{number:04}" for number in range(400))


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "home")
    person.session("one", *[record for n in range(9) for record in exchange(f"say {n}", LONG)])
    person.run("ingest")
    return person


def on_terminal(person: StoreUser, *words: str, **environ: str) -> str:
    """What a person at a terminal of 24 lines and 60 columns sees."""
    seen = terminal_scene.on_terminal(person, *words, columns=60, **environ)
    assert seen.code == 0, seen.text
    return seen.styled


def test_lines_are_broken_between_words_and_no_word_is_lost(person: StoreUser) -> None:
    for words in (("show", "1"), ("read", "one")):
        printed = on_terminal(person, *words, PAGER="cat")
        assert (
            max(
                len(line)
                for line in printed.replace("\x1b[1m", "").replace("\x1b[2m", "").split("\n")
            )
            <= 60
        )
        assert printed.count("word0200") == 9
        assert not [line for line in printed.split("\n") if line.startswith("ord")]


def test_more_than_a_screen_goes_to_the_pager_and_less_does_not(
    person: StoreUser, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    (tmp_path / "pager").write_text(f"#!/bin/sh\ncat > {seen}\n")
    (tmp_path / "pager").chmod(0o755)
    assert "word0200" not in on_terminal(person, "show", "1", PAGER=f"{tmp_path}/pager")
    assert seen.read_text().count("word0200") == 9
    seen.unlink()
    assert "say 0" in on_terminal(
        person, "read", "one", "--lines", "18", "--json", PAGER=f"{tmp_path}/pager"
    )
    assert "say 0" in on_terminal(person, "sessions", "--all", PAGER=f"{tmp_path}/pager")
    assert not seen.exists()


@pytest.mark.parametrize("pager", ["no-such-pager", "less 'open", "false", "sh -c 'exit 127'"])
def test_a_pager_that_does_not_work_hides_nothing(person: StoreUser, pager: str) -> None:
    assert "word0200" in on_terminal(person, "show", "1", PAGER=pager)


def test_less_shows_styles_whatever_the_person_set_for_it(
    person: StoreUser, tmp_path: Path
) -> None:
    (tmp_path / "less").write_text(f'#!/bin/sh\ncat > /dev/null\necho "$*" > {tmp_path}/options\n')
    (tmp_path / "less").chmod(0o755)
    on_terminal(person, "show", "1", PAGER=f"{tmp_path}/less -i", LESS="-S")
    assert (tmp_path / "options").read_text() == "-R -i\n"


def test_a_pipe_gets_lines_as_they_are_and_no_pager(person: StoreUser) -> None:
    assert LONG in person.run("show", "1", "--full", PAGER="false").stdout
    assert LONG in person.run("read", "one", PAGER="false").stdout


def test_code_and_indents_stay() -> None:
    text = "```\n" + "x " * 50 + "\n```\n  - " + "word " * 20
    shown = broken_at_words(text, 40).split("\n")
    assert shown[1] == "x " * 50
    assert all(line.startswith("  ") and len(line) <= 40 for line in shown[3:])


def test_the_indent_of_a_line_in_a_style_stays() -> None:
    line = painted("dim", "  claude-code, in /srv/shop, session " + "word " * 20)
    shown = [plain_text(part) for part in broken_at_words(line, 40).split("\n")]
    assert len(shown) > 2
    for part in shown:
        assert STYLES.sub("", part).startswith("  ")
        assert len(STYLES.sub("", part)) <= 40
        assert part.endswith("\x1b[0m")


def test_lists_and_hits_break_no_word_on_a_terminal(person: StoreUser) -> None:
    long = "the price is rounded in cents because the accounting department wants it so"
    person.run("remember", long)
    for words in (("memories",), ("memories", "search", "price"), ("search", "word0200")):
        lines = on_terminal(person, *words).split("\n")
        assert max(len(STYLES.sub("", line)) for line in lines) <= 60, words
    assert max(map(len, person.run("memories").stdout.split("\n"))) > 60
