"""On a terminal, messages and pages are rendered; in a pipe they stay as they are."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from git_scene import git, repository
from records import assistant, tool_result, user
from store_scene import COMMAND, StoreUser
from terminal_scene import on_terminal

from session_memory.common.system._wrapping import width_of

TYPED = "keep **this** and\n  `that` as I typed it"
ANSWER = "## The plan\n\nIt has **two** steps:\n\n- first\n- second\n\n```py\nreturn 1\n```"
STARTED = f"""
import os, sys
os.execl(sys.executable, sys.executable, "-c", {COMMAND!r}, *sys.argv[1:])
"""
RENDERED = ["The plan", "", "It has two steps:", "", "- first", "- second", "", "    return 1"]


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "home")
    person.session("plan", user(TYPED), assistant(ANSWER), user("go on"), assistant("Done."))
    person.run("ingest")
    return person


def part(lines: list[str], first: str, count: int) -> list[str]:
    """The lines from the one that is `first`, without blanks at their ends."""
    at = [line.rstrip() for line in lines].index(first)
    return [line.rstrip() for line in lines[at : at + count]]


@pytest.mark.parametrize("words", [("read", "plan"), ("show", "1")])
@pytest.mark.parametrize("columns", [80, 140])
def test_an_answer_is_rendered_and_a_request_is_as_it_was_typed(
    person: StoreUser, words: tuple[str, ...], columns: int
) -> None:
    seen = on_terminal(person, *words, columns=columns)
    assert seen.code == 0
    assert part(seen.lines, "The plan", len(RENDERED)) == RENDERED
    assert TYPED in seen.text
    assert "\x1b[1mtwo\x1b[0m" in seen.styled


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_markdown_stays_as_it_is(
    person: StoreUser, environ: dict[str, str]
) -> None:
    for words in (("read", "plan"), ("show", "1"), ("handoff", "plan")):
        seen = on_terminal(person, *words, columns=300, **environ)
        assert "\x1b" not in seen.styled
        assert seen.text == person.run(*words).stdout


def test_a_pipe_gets_markdown_and_never_loads_rich(person: StoreUser) -> None:
    assert ANSWER in person.run("read", "plan").stdout
    assert ANSWER in person.run("show", "1").stdout
    code = (
        "import sys\nfrom session_memory.cli import main\n"
        "for name in ('read', 'handoff'):\n    main([name, 'plan'])\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'rich']"
    )
    done = person.run_command(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr


def test_without_rich_a_terminal_gets_what_a_pipe_gets(person: StoreUser, tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich/__init__.py").write_text("raise ModuleNotFoundError(name='rich')")
    script = tmp_path / "started.py"
    script.write_text(STARTED)
    environ = {"PYTHONPATH": str(tmp_path)}
    seen = on_terminal(person, "read", "plan", columns=300, module=str(script), **environ)
    assert seen.text == person.run("read", "plan").stdout
    assert ANSWER in seen.text


def test_the_rest_of_a_very_long_output_is_shown_as_it_is(person: StoreUser) -> None:
    part = "some **words** " * 6000
    said = [record for number in range(5) for record in (user(f"q{number}"), assistant(part))]
    person.session("long", *said, user("go on"), assistant("the **end**"))
    seen = on_terminal(person, "read", "long")
    assert (seen.text.count("words"), seen.text.count("**words**")) == (30000, 18000)
    assert seen.text.endswith("the **end**\n")


def test_a_handoff_is_rendered_and_its_command_is_not(person: StoreUser) -> None:
    page = on_terminal(person, "handoff", "plan")
    assert page.text.startswith("Handoff: ")
    assert part(page.lines, "Task", 3) == ["Task", "", "First asked:"]
    assert "# Handoff: " in person.run("handoff", "plan").stdout
    command = on_terminal(person, "handoff", "plan", "--to", "codex", columns=40)
    assert command.text == person.run("handoff", "plan", "--to", "codex").stdout


def test_a_reason_is_in_bold_and_the_proposal_rendered(person: StoreUser) -> None:
    root = repository(person.home / "work", **{"cart.py": "old\n"})
    edit = {"file_path": f"{root}/cart.py", "old_string": "old", "new_string": "the new line of it"}
    call = assistant(("Edit", edit), cwd=str(root))
    done = tool_result("done")
    done["message"]["content"][0]["tool_use_id"] = call["message"]["content"][0]["id"]
    proposal = "I can make the **new** line. Shall I?"
    person.session("edit", user("look"), assistant(proposal), user("yes"), call, done)
    (root / "cart.py").write_text("the new line of it\n")
    git(root, "commit", "-qam", "New")
    seen = on_terminal(person, "why", "cart.py:1", cwd=root)
    plain = person.run("why", "cart.py:1", cwd=root).stdout
    assert f"agreed to: “{proposal}”" in plain
    assert seen.styled.startswith("\x1b[1mcart.py:1 (commit ")
    assert "\x1b[1mnew\x1b[0m" in seen.styled
    assert seen.text.replace("the new line. Shall", "the **new** line. Shall") == plain


@pytest.mark.parametrize("columns", [80, 140])
def test_costs_and_since_have_bars_on_a_terminal_alone(person: StoreUser, columns: int) -> None:
    usage = {"model": "claude-opus-4-5", "usage": {"input_tokens": 1000, "output_tokens": 100}}
    for number, requests in enumerate((4, 2)):
        where = {"cwd": str(person.home / f"project{number}")}
        for part in "ab":
            now = time.time() - 60
            words = [f"please do {each} of {part}{number}" for each in range(requests)]
            said = [user(text, at=now, **where) for text in words]
            answer = assistant("Done.", message=usage, at=now + 1, **where)
            person.session(f"session{number}{part}", *said, answer)
    for words in (("costs", "--by", "project"), ("since", "1d")):
        seen = on_terminal(person, *words, columns=columns)
        assert seen.code == 0
        bars = [line.count("━") for line in seen.lines if "━" in line]
        assert len(bars) >= 2, seen.text
        assert max(bars) >= 12
        assert max(map(width_of, seen.lines)) <= columns
        assert "━" not in person.run(*words).stdout
