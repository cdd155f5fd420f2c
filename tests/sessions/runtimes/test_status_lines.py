"""The status line as an install puts it into the settings, in the terminals of the real Copilot CLI
and Qwen Code."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.everyone import CLIENTS
from clients.npm import NpmPlace
from clients.terminal import Terminal
from install_machine import Machine, copy_repository

from session_memory.app.install._status_line import switch_status_line
from session_memory.sessions.settings.homes import person_home

READY = {"copilot": "/ commands", "qwen-code": "Type your message"}
ASKED = "what is left to do?"


@pytest.mark.parametrize("name", ["copilot", "qwen-code"])
def test_it_shows_who_else_is_at_work(tmp_path: Path, npm_place: NpmPlace, name: str) -> None:
    client = CLIENTS[name]
    with client.model() as model:
        program = client.program(tmp_path, npm_place(client.package), model)
        (tmp_path / "home" / f".{name.partition('-')[0]}").mkdir(exist_ok=True)
        machine = (
            Machine(tmp_path / "home", copy_repository(tmp_path / "copy"))
            .has_environment()
            .has_program()
        )
        machine.installed()
        (machine.home / ".session-memory").mkdir(exist_ok=True)
        (machine.home / ".session-memory" / "config.yaml").write_text("statusline: true\n")
        home = person_home(machine.environ)
        # compiled here: the environment of this machine has no parser
        assert home.settings().statusline
        switch_status_line(home, machine.environ, is_on=True)
        program.say("how do I deploy this?")
        environment = {**program.environment, "TERM": "xterm-256color"}
        terminal = Terminal([*program.command], program.project, environment)
        try:
            terminal.wait(lambda: READY[name] in terminal.text(), "its screen")
            terminal.enter(ASKED)
            terminal.wait(
                lambda: "1otheractive(" in "".join(terminal.text().split()), "the status line"
            )
        finally:
            terminal.close()
