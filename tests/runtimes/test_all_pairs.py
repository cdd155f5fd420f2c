"""What is done in any runtime is told in every other: the real programs, each with a fake model, in one home directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.claude import claude_executable
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from install_machine import NOBODY_LISTENS, PYTHON, Machine, copy_repository, mentions

from session_memory.runtimes import all_runtimes

MARK = "[Session Activity]"
MOST_PROMPTS = 4  # in which all of the others is told, at most 500 characters with each
# What the programs write themselves, and what is kept of the sessions. What remains is ours, and must be gone.
THEIRS = (
    ".session-memory/", ".claude/projects/", ".claude/backups/", ".claude/history", ".claude.json", ".cache/", ".codex/sessions/", ".codex/log",
    ".codex/history", ".codex/state", ".codex/logs", ".copilot/session-state/", ".copilot/logs/", ".copilot/session-store", ".copilot/settings.json",
    ".pi/agent/sessions/", ".qwen/projects/", ".qwen/extension-store/", ".qwen/debug/", ".local/share/session-memory/env/", ".npm/",
    ".gemini/tmp/", ".gemini/history/", ".local/share/opencode/", ".local/state/opencode/",
)  # fmt: skip


@pytest.fixture
def users(tmp_path: Path, npm_place: NpmPlace, bundled_cli: None) -> Iterator[dict[str, User]]:
    """Each runtime with its user's settings, and a `python3` on the PATH for those that take plugins."""
    assert set(CLIENTS) == {one.name for one in all_runtimes()}
    assert claude_executable()
    shim = tmp_path / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
    shim.chmod(0o755)
    with ExitStack() as stack:
        found = {}
        for name, client in CLIENTS.items():
            model = stack.enter_context(client.model())
            place = npm_place(client.package) if client.package else Path()
            program = client.program(tmp_path, place, model)
            program.environment.update(PIP_INDEX_URL=NOBODY_LISTENS, PIP_RETRIES="0", PIP_CONFIG_FILE=os.devnull)
            program.environment["PATH"] = f"{shim.parent}{os.pathsep}{program.environment['PATH']}"
            found[name] = User(program, model)
            if client.settings:
                path = tmp_path / "home" / client.settings
                path.parent.mkdir(exist_ok=True)
                path.write_text(client.text)
        yield found


@pytest.mark.slow
def test_every_runtime_is_told_what_was_done_in_every_other_after_one_install(
    tmp_path: Path, users: dict[str, User]
) -> None:
    machine = Machine(tmp_path / "home", copy_repository(tmp_path / "copy")).has_environment().has_program()
    machine.installed()
    check_all_pairs(users)
    assert machine.install("--uninstall").returncode == 0
    check_gone(machine.home)


@pytest.mark.slow
def test_every_runtime_is_told_what_was_done_in_every_other_with_the_plugin_of_each(
    tmp_path: Path, users: dict[str, User]
) -> None:
    source = copy_repository(tmp_path / "copy")
    for user in users.values():
        user.program.add_plugin(source)
    check_all_pairs(users)
    for user in users.values():
        user.program.remove_plugin(source)
    check_gone(tmp_path / "home", has_settings=False)


def check_all_pairs(users: dict[str, User]) -> None:
    """Every runtime hears of all others, from prompt to prompt as far as they fit in, and then of nothing more."""
    for name, user in users.items():
        user.ask(f"plant {name}")
    for name, user in users.items():
        request = user.ask("go on")
        for _ in range(MOST_PROMPTS):
            told, request = request.count(MARK), user.ask("go on")
            if request.count(MARK) == told:
                break
        else:
            pytest.fail(f"{name} is told something with each prompt")
        # By its first prompt or, in OpenCode, by the title that the model makes of it: the fake one echoes it.
        told_of = {other for other in users if re.search(rf"- {other}: [^(]*plant {other}", request)}
        missing = set(users) - told_of - {name}
        assert not missing, f"{name} was never told of {missing}"


def check_gone(home: Path, *, has_settings: bool = True) -> None:
    """Nothing is left that is ours, and the settings are as they were."""
    assert mentions(home, *THEIRS) == []
    for client in CLIENTS.values():
        if client.settings and has_settings:
            assert (home / client.settings).read_text() == client.text
