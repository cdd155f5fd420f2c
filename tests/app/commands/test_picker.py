"""A command that takes one session asks which, at a terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from records import assistant, record, user
from store_scene import MONDAY, StoreUser
from terminal_scene import on_terminal

COMMANDS = ("read", "handoff", "archive", "export")
CURSOR_ASKED, CURSOR = b"\x1b[6n", b"\x1b[1;1R"  # with which fzf asks a terminal for its place
CHOSEN = {
    "read": "Session Cart ",
    "handoff": "Handoff: Cart",
    "archive": "-cart.md",
    "export": "# Cart",
}
EVIL = "Ho\x1b]0;x\x07tel\u202e"


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "home")
    for number, title in enumerate(("Cart", EVIL)):
        person.session(
            title[:2],
            record("custom-title", customTitle=title, sessionId=title[:2]),
            user(f"please look at the {number}", at=MONDAY),
            assistant("It is done.", at=MONDAY + 1),
        )
    return person


def fzf(tmp_path: Path, code: str) -> str:
    """Put an fzf on the PATH that writes its rows to `rows`, then runs `code`; return the PATH."""
    program = tmp_path / "bin/fzf"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/options\ncat > {tmp_path}/rows\n{code}\n'
    )
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_person_at_a_terminal_chooses_by_number_or_by_words(
    person: StoreUser, command: str
) -> None:
    listed = on_terminal(person, command, typed=[""], PATH="/nowhere")
    [row] = [line for line in listed.lines if " Cart " in line]
    for typed in (row.split()[0], "cart"):
        seen = on_terminal(person, command, typed=[typed], PATH="/nowhere")
        assert (seen.code, CHOSEN[command] in seen.text) == (0, True), seen.text


def test_nothing_chosen_is_no_result(person: StoreUser) -> None:
    seen = on_terminal(person, "read", typed=[""], PATH="/nowhere")
    assert (seen.code, seen.text.endswith("session-memory: no session was chosen\n")) == (1, True)
    unknown = on_terminal(person, "read", typed=["zebra"], PATH="/nowhere")
    assert (unknown.code, "no session is called 'zebra'" in unknown.text) == (1, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_and_agents_are_not_asked(person: StoreUser, command: str) -> None:
    done = person.run(command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("session-memory: no session was named\n  name ")
    for words, environ in (((command, "--json"), {}), ((command,), {"CLAUDECODE": "1"})):
        seen = on_terminal(person, *words, **environ)
        assert (seen.code, seen.text) == (2, done.stderr)


def test_fzf_is_used_if_it_is_installed(person: StoreUser, tmp_path: Path) -> None:
    path = fzf(tmp_path, f'grep " *Cart " {tmp_path}/rows')
    seen = on_terminal(person, "read", PATH=path)
    assert (seen.code, "Session Cart " in seen.text) == (0, True), seen.text
    head, *rows = (tmp_path / "rows").read_text().splitlines()
    assert head.split() == ["-1", "SESSION", "RUNTIME", "PROJECT", "LAST", "ACTIVE"]
    assert sorted(row.split("\t")[1].split()[0] for row in rows) == ["Cart", "Hotel"]
    assert "--with-nth=2.." in (tmp_path / "options").read_text()


def test_fzf_without_a_choice_is_no_result(person: StoreUser, tmp_path: Path) -> None:
    seen = on_terminal(person, "read", PATH=fzf(tmp_path, "exit 130"))
    assert (seen.code, seen.text) == (1, "session-memory: no session was chosen\n")


def test_a_number_is_asked_for_if_fzf_fails(person: StoreUser, tmp_path: Path) -> None:
    seen = on_terminal(person, "read", typed=["cart"], PATH=fzf(tmp_path, "exit 2"))
    assert (seen.code, "Session Cart " in seen.text) == (0, True), seen.text


def test_the_end_of_the_input_is_no_choice(person: StoreUser) -> None:
    seen = on_terminal(person, "read", typed=["\x04"], PATH="/nowhere")
    assert seen.code == 1
    assert seen.lines[-2] == "session-memory: no session was chosen"


def test_titles_are_plain_and_columns_fit(person: StoreUser) -> None:
    for columns in (50, 140):
        seen = on_terminal(person, "read", typed=[""], columns=columns, PATH="/nowhere")
        table = seen.lines[: seen.text.count("\n") - 2]
        assert "\x1b]" not in seen.styled
        assert "\u202e" not in seen.styled
        assert "Hotel" in seen.text
        assert max(map(len, table[:3])) <= columns


def test_without_sessions_it_says_so(tmp_path: Path) -> None:
    empty = StoreUser(tmp_path / "home")
    seen = on_terminal(empty, "read")
    assert (seen.code, seen.lines[0]) == (1, "session-memory: there are no sessions yet")


@pytest.mark.skipif(shutil.which("fzf") is None, reason="fzf is not installed")
@pytest.mark.parametrize(
    ("keys", "code", "shown"),
    [
        ([(b"2/2", b"cart"), (b"1/2", b"\r")], 0, "Session Cart "),
        ([(b"2/2", b"zebra"), (b"0/2", b"\r")], 1, "no session was chosen"),
        ([(b"2/2", b"\x1b")], 1, "no session was chosen"),
    ],
)
def test_the_real_fzf_finds_by_words_and_ends_with_escape(
    person: StoreUser, keys: list[tuple[bytes, bytes]], code: int, shown: str
) -> None:
    path = f"{Path(shutil.which('fzf') or '').parent}:/usr/bin:/bin"
    place = (CURSOR_ASKED, CURSOR)
    seen = on_terminal(person, "read", answers=[place, place, *keys], PATH=path)
    assert (seen.code, shown in seen.text) == (code, True), seen.text


def test_a_session_to_forget_is_chosen_and_confirmed(person: StoreUser) -> None:
    listed = on_terminal(person, "forget", typed=[""], PATH="/nowhere")
    [row] = [line for line in listed.lines if " Cart " in line]
    refused = on_terminal(person, "forget", typed=[row.split()[0], "n"], PATH="/nowhere")
    assert "[y/N]" in refused.text
    assert "Cart" in person.run("sessions", "--all").stdout
    seen = on_terminal(person, "forget", typed=[row.split()[0], "y", "n"], PATH="/nowhere")
    assert seen.code == 0, seen.text
    assert "Cart" not in person.run("sessions", "--all").stdout


def test_words_of_a_title_forget_nothing(person: StoreUser) -> None:
    seen = on_terminal(person, "forget", typed=["cart", "y"], PATH="/nowhere")
    assert (seen.code, "[y/N]" in seen.text) == (1, False), seen.text
