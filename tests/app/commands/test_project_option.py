"""`--project`: a path is that directory or its repository, in every command that has the option."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_scene import repository
from records import assistant, exchange, user
from store_scene import MONDAY, StoreUser

from session_memory.app.projects import Project
from session_memory.cli import COMMANDS, parser_of

# each command with --project, and the words that it needs besides
CALLS = {
    "costs": "--by project",
    "errors": "'jam boiled over'",
    "export": "--dry-run",
    "forget": "--dry-run",
    "patterns": "",
    "proof": "",
    "search": "jam",
    "sessions": "",
    "since": "2026-01-01",
}


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options(below)
        elif "--project" in action.option_strings:
            yield action


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A session with plums in plain/a, one with figs in plain/b, neither in a repository."""
    machine = StoreUser(tmp_path / "user")
    for fruit, name in (("plum", "a"), ("fig", "b")):
        directory = machine.home / "plain" / name
        directory.mkdir(parents=True)
        call = {"type": "tool_use", "id": f"t-{fruit}", "name": "Bash", "input": {"command": fruit}}
        result = {
            "tool_use_id": f"t-{fruit}",
            "type": "tool_result",
            "is_error": True,
            "content": "Exit code 1\nError: jam boiled over",
        }
        cwd = str(directory)
        machine.session(
            f"{fruit}-1",
            user(f"cook {fruit} jam", at=MONDAY, cwd=cwd),
            assistant(call, at=MONDAY + 1, cwd=cwd),
            user([result], at=MONDAY + 2, cwd=cwd),
            assistant(f"The {fruit} jam boiled over.", at=MONDAY + 3, cwd=cwd),
            project=cwd.replace("/", "-"),
        )
    return machine


def titles(machine: StoreUser, project: str, cwd: Path) -> list[str]:
    told = machine.result("conversations", "--project", project, cwd=cwd)
    return sorted(talk["title"] for talk in told["conversations"])


def test_every_command_reads_its_project_in_one_place() -> None:
    """Whatever a command gets is a Project, which cannot be taken for part of a path."""
    commands = set()
    for name in COMMANDS:
        for option in options(parser_of(name)):
            commands.add(name)
            assert option.default is None, name
            assert callable(option.type), name
            assert isinstance(option.type("."), Project), name
            with pytest.raises(argparse.ArgumentTypeError):
                option.type("")
    assert commands == {*CALLS, "graph"}


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.parametrize("project", [".", "../a/"])
def test_outside_a_repository_a_path_is_that_directory(
    machine: StoreUser, command: str, project: str
) -> None:
    words = [*shlex.split(CALLS[command]), "--project", project]
    done = machine.run(command, *words, cwd=machine.home / "plain" / "a")
    everything = done.stdout + done.stderr
    assert "fig" not in everything.replace("figure", "")
    assert "plain/b" not in everything
    elsewhere = machine.run(command, *words[:-1], "../b", cwd=machine.home / "plain" / "a")
    assert "plum" not in elsewhere.stdout + elsewhere.stderr
    assert "plain/a" not in elsewhere.stdout + elsewhere.stderr


def test_every_spelling_of_a_directory_means_it(machine: StoreUser) -> None:
    here, plain = machine.home / "plain" / "a", machine.home / "plain"
    (machine.home / "link").symlink_to(here)
    (machine.home / "links").symlink_to(plain)
    spelled = (
        *(".", "./", "./.", "../a", "../a/", "../b/../a", ".//"),
        *(str(here), f"{here}/", f"{plain}//a", "~/plain/a", "~/plain/a/", "../../plain/a"),
        *("~/link", "../../link", "../../link/", "../../links/a", str(machine.home / "link")),
    )
    assert {project: titles(machine, project, here) for project in spelled} == {
        project: ["cook plum jam"] for project in spelled
    }
    both = ("..", "../", "~", "~/plain", "../../link/..", "../../links", "/")
    assert {project: titles(machine, project, here) for project in both} == {
        project: ["cook fig jam", "cook plum jam"] for project in both
    }
    assert titles(machine, "plain/a", machine.home) == ["cook plum jam"]
    assert titles(machine, "a", plain) == ["cook fig jam", "cook plum jam"]  # part of any path


def test_a_path_without_sessions_is_an_error_that_names_it(machine: StoreUser) -> None:
    empty = machine.home / "empty"
    empty.mkdir()
    for command in ("search jam", "costs", "export", "errors jam", "proof", "patterns"):
        done = machine.run(*command.split(), "--project", ".", cwd=empty)
        assert done.returncode == 1, command
        assert f"no session was started in '{empty}' or below" in done.stderr, command


def test_the_path_of_a_removed_directory_finds_what_was_done_there_only(
    machine: StoreUser,
) -> None:
    gone = machine.home / "plain" / "a"
    beside = machine.home / "plain" / "a-old"
    machine.session("old", *exchange("old jam", "hi", at=MONDAY, cwd=str(beside)))
    gone.rmdir()
    assert titles(machine, str(gone), machine.home) == ["cook plum jam"]
    assert titles(machine, "./plain/a", machine.home) == ["cook plum jam"]


def test_a_session_that_noted_a_link_is_found_by_the_link(machine: StoreUser) -> None:
    link = machine.home / "link"
    link.symlink_to(machine.home / "plain" / "a")
    machine.session("linked", *exchange("linked", "hi", at=MONDAY, cwd=str(link)))
    assert titles(machine, "~/link", machine.home) == ["cook plum jam", "linked"]
    done = machine.run("forget", "--project", "link", "--yes", cwd=machine.home)
    assert done.returncode == 0, done.stderr
    assert titles(machine, "~", machine.home) == ["cook fig jam"]


def test_a_directory_in_a_repository_means_the_repository(machine: StoreUser) -> None:
    app = repository(machine.home / "app")
    below = app / "src"
    below.mkdir()
    machine.session("one", *exchange("in app", "hi", at=MONDAY, cwd=str(app)))
    for project, cwd in ((".", below), ("./src", app), ("src/", app), ("../app", app)):
        assert titles(machine, project, cwd) == ["in app"]


def test_an_empty_project_is_refused(machine: StoreUser) -> None:
    for command, words in CALLS.items():
        done = machine.run(command, *shlex.split(words), "--project", "", "--json")
        assert (done.returncode, "write . for the current directory" in done.stderr) == (2, True)
