"""The hooks for notices: there exactly while the person wants notices, in every runtime that has
them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from install_machine import MINE, Machine, installed_machine
from own_process import run_here

from session_memory.sessions.settings.homes import person_home

EVENTS = {
    ".claude/settings.json": ("Stop", "PermissionRequest"),
    ".codex/hooks.json": ("Stop", "PermissionRequest"),
    ".qwen/settings.json": ("Stop", "PermissionRequest"),
    ".gemini/settings.json": ("AfterAgent", "Notification"),
}


@pytest.fixture
def machine() -> Machine:
    """A machine with an install into runtimes, of which Claude Code has a hook of its user's."""
    machine = installed_machine(".codex", ".qwen", ".gemini", ".copilot")
    machine.install("--uninstall")
    machine.settings.write_text(MINE)
    machine.has_environment().has_program().installed()
    return machine


def config(machine: Machine, *words: str) -> Any:
    done = run_here(["config", "--json", *words], machine.environ, machine.home)
    assert done.returncode == 0, done.stderr
    person_home(machine.environ).settings()  # compiled here: the machine has no parser
    return json.loads(done.stdout)


def waiting_hooks(path: Path) -> list[str]:
    """Return the events of a settings file with our hook for notices."""
    return [
        event
        for event, matchers in json.loads(path.read_bytes())["hooks"].items()
        for matcher in matchers
        for entry in matcher["hooks"]
        if "hooks/session_waits.py" in entry["command"]
    ]


def contents(machine: Machine) -> dict[str, bytes]:
    """Return every file of the runtimes."""
    folders = [machine.home / name.partition("/")[0] for name in (*EVENTS, ".copilot/")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in files}


def test_the_setting_adds_the_hooks_and_off_restores_every_byte(machine: Machine) -> None:
    before = contents(machine)
    assert [waiting_hooks(machine.home / file) for file in EVENTS] == [[], [], [], []]
    changed = config(machine, "notices", "desktop")["changed"]
    assert changed == [str(machine.home / file) for file in EVENTS]
    for file, events in EVENTS.items():
        assert tuple(waiting_hooks(machine.home / file)) == events
    assert config(machine, "notices", "command")["changed"] == []
    assert config(machine, "notices", "off")["changed"] == changed
    assert contents(machine) == before


@pytest.mark.parametrize("words", [["notices", "bell"], ["notices", "--unset"]])
def test_without_notices_of_hooks_there_are_none(machine: Machine, words: list[str]) -> None:
    before = contents(machine)
    config(machine, "notices", "desktop")
    config(machine, *words)
    assert contents(machine) == before


def test_an_install_keeps_them_and_an_uninstall_restores_every_byte(machine: Machine) -> None:
    config(machine, "notices", "desktop")
    machine.installed()
    assert waiting_hooks(machine.settings) == ["Stop", "PermissionRequest"]
    assert machine.install("--uninstall").returncode == 0
    assert machine.settings.read_text() == MINE


def test_the_doctor_names_hooks_that_the_setting_misses_or_does_not_want(machine: Machine) -> None:
    config(machine, "notices", "desktop")
    with_hooks = machine.settings.read_bytes()
    config(machine, "notices", "off")
    without = machine.settings.read_bytes()

    machine.settings.write_bytes(with_hooks)
    said = machine.run_doctor("hooks").stdout
    assert "the hook for Stop and PermissionRequest is there, but notices are off" in " ".join(
        said.split()
    )

    config(machine, "notices", "desktop")
    machine.settings.write_bytes(without)
    _, wrong = machine.doctor()
    assert any("Stop and PermissionRequest is missing, so it never runs" in text for text in wrong)


def test_a_file_that_cannot_be_edited_is_named_and_the_others_are_changed(machine: Machine) -> None:
    (machine.home / ".codex/hooks.json").write_text("{")
    changed = config(machine, "notices", "desktop")
    assert str(machine.settings) in changed["changed"]
    assert [text for text in changed["notices"] if ".codex/hooks.json:1" in text]


def test_only_these_hooks_change_and_nothing_that_the_person_removed_returns(
    machine: Machine,
) -> None:
    edited, removed, *_ = sorted(machine.claude.rglob("SKILL.md"))
    edited.write_text("mine")
    removed.unlink()
    values = json.loads(machine.settings.read_bytes())
    del values["hooks"]["SessionEnd"]
    machine.settings.write_text(json.dumps(values, indent=4))
    before = contents(machine)
    config(machine, "notices", "desktop")
    with_hooks = contents(machine)
    assert waiting_hooks(machine.settings) == ["Stop", "PermissionRequest"]
    assert with_hooks.keys() == before.keys()
    assert "SessionEnd" not in json.loads(machine.settings.read_bytes())["hooks"]
    config(machine, "notices", "off")
    assert contents(machine) == before
    assert machine.install("--uninstall").returncode == 0
    assert json.loads(machine.settings.read_bytes()) == json.loads(MINE)


def test_no_hook_is_added_if_the_setting_cannot_be_written(machine: Machine) -> None:
    before = contents(machine)
    file = machine.home / ".session-memory" / "config.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("a: [\n")
    done = run_here(["config", "notices", "desktop"], machine.environ, machine.home)
    assert done.returncode == 1
    assert "config.yaml:2" in done.stderr
    assert contents(machine) == before


def test_before_an_install_the_command_says_what_is_missing(tmp_path: Path) -> None:
    changed = config(Machine(tmp_path), "notices", "desktop")
    assert changed["notices"] == ["no hook will send them until you run session-memory install"]


def test_an_agent_home_cannot_add_them(machine: Machine, tmp_path: Path) -> None:
    before = contents(machine)
    home = tmp_path / "agent"
    (home / ".session-memory" / "sessions").mkdir(parents=True)
    machine.installed("--home", str(home))
    config(machine, "notices", "desktop", "--home", str(home))
    assert contents(machine) == before
