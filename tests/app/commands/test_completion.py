"""`session-memory completion`: the real shells complete by its scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from completion_scene import completed_by_bash, completed_by_fish, script, shell, typed_shell
from store_scene import StoreUser

from session_memory.cli import COMMANDS

# What somebody types, and what may follow; the shells put an unambiguous one there.
TYPED = {
    "sear": ["search"],
    "se": ["search", "sessions"],
    "search --li": ["--limit"],
    "search kyoto flights --pro": ["--project"],
    "export --format h": ["html"],
    "memories sh": ["show"],
    "host sc": ["schedule"],
    "host schedule --ev": ["--every"],
    "completion f": ["fish"],
    "config store.w": ["store.watch_path"],
    "search cart --runtime cop": ["copilot"],
    "read --include": [],  # for people, and hidden
}


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path / "user")


def test_bash_completes_commands_actions_options_and_their_values(machine: StoreUser) -> None:
    source = script(machine, "bash")
    for typed, expected in TYPED.items():
        assert completed_by_bash(machine, source, typed.split()) == expected, typed
    assert completed_by_bash(machine, source, [""]) == list(COMMANDS)


def test_fish_completes_the_same(machine: StoreUser) -> None:
    source = script(machine, "fish")
    for typed, expected in TYPED.items():
        assert sorted(completed_by_fish(machine, source, typed)) == sorted(expected), typed


def test_zsh_completes_the_same_from_its_first_time_on(machine: StoreUser) -> None:
    zsh = shell("zsh")
    source = script(machine, "zsh")
    setup = f"fpath+=({source.parent}); autoload -U compinit; compinit -u -D"
    with typed_shell([zsh, "-f", "-i"], machine.environment, machine.home, setup) as typed:
        typed.type("session-memory export --format h\t")
        typed.wait_for("html ")
