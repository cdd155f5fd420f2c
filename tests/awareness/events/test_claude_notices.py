"""Notices by the hooks of the real Claude Code, registered by the setting and removed by it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from clients.claude import Claude, ask
from fakes.fake_anthropic import FakeAnthropic
from install_machine import Machine
from own_process import run_here

from session_memory.sessions.settings.homes import person_home

WAIT_SECONDS = 60
MINE = '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}\n'


@pytest.fixture
def machine(bare_claude: Claude) -> Machine:
    (bare_claude.config_dir / "settings.json").write_text(MINE)
    machine = Machine(bare_claude.home).has_environment().has_program()
    machine.installed()
    return machine


def config(machine: Machine, *words: str) -> None:
    done = run_here(["config", *words], machine.environ, machine.home)
    assert done.returncode == 0, done.stderr
    person_home(machine.environ).settings()  # compiled here: the machine has no parser


def program(machine: Machine, ending: str = "") -> Path:
    """A program that writes its argument on a line of the file `sent`."""
    path = machine.home / "notify"
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> {machine.home}/sent\n{ending}\n")
    path.chmod(0o755)
    return path


def sent(machine: Machine, lines: int) -> list[str]:
    """Return what was sent, once it has so many lines."""
    path, until = machine.home / "sent", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            break
        time.sleep(0.05)
    return path.read_text().splitlines() if path.exists() else []


def notice_processes(machine: Machine) -> list[str]:
    done = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True)
    own = (f"{machine.home}/notify", f"{machine.program_dir}")
    return [line for line in done.stdout.splitlines() if any(part in line for part in own)]


def test_the_hooks_send_each_notice_once_and_off_restores_the_settings(
    bare_claude: Claude, api: FakeAnthropic, machine: Machine
) -> None:
    before = machine.settings.read_bytes()
    config(machine, "notice_command", f"[{program(machine)}]")
    config(machine, "notices", "command")
    assert {"Stop", "PermissionRequest"} <= json.loads(machine.settings.read_bytes())[
        "hooks"
    ].keys()
    with bare_claude.terminal("--permission-mode", "default") as terminal:
        ask(terminal, api, "say hello")
        [waits] = sent(machine, 1)
        assert waits.startswith("waits for you: project: ")
        api.replies = [{"tools": [{"name": "Bash", "input": {"command": "mkdir made"}}]}]
        ask(terminal, api, "make it")
        asks = sent(machine, 2)[1:]
        assert asks == ["asks for approval: project: Bash: mkdir made"]
    until = time.monotonic() + WAIT_SECONDS
    while notice_processes(machine) and time.monotonic() < until:
        time.sleep(0.1)
    assert notice_processes(machine) == []
    assert len(sent(machine, 2)) == 2
    config(machine, "notices", "off")
    assert machine.settings.read_bytes() == before
