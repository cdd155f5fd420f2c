"""Calls of the real Copilot CLI that were killed: it closes them as failed when their session is
resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from git_scene import repository
from install_machine import Machine, copy_repository
from runtimes_scene import READ, SHELL

WAIT_SECONDS = 60


@pytest.fixture
def copilot(tmp_path: Path, npm_place: NpmPlace) -> Iterator[User]:
    """Its user after an install, in a repository with the file app."""
    client = CLIENTS["copilot"]
    with client.model() as model:
        user = User("copilot", client.program(tmp_path, npm_place(client.package), model), model)
        Machine(
            tmp_path / "home", copy_repository(tmp_path / "copy")
        ).has_environment().has_program().installed()
        user.program.project.rmdir()
        repository(user.program.project, app="port = 1\n")
        yield user


def sessions(user: User) -> set[str]:
    """The ids of the sessions that have events."""
    return {
        path.parent.name for path in user.program.home.glob(".copilot/session-state/*/events.jsonl")
    }


def test_what_a_killed_command_wrote_is_told_once_its_session_is_resumed(copilot: User) -> None:
    app, end = copilot.program.project / "app", copilot.program.home / "end"
    copilot.orders("look around", copilot.call(READ, str(app)))
    copilot.ask("look around")
    (reader,) = sessions(copilot)
    copilot.orders(
        "change the port",
        copilot.call(SHELL, f"sed -i s/1/2/ app; until [ -e {end} ]; do sleep .1; done"),
    )
    command = [*copilot.program.command, "-p", "change the port", "--allow-all-tools", "-s"]
    killed = subprocess.Popen(
        command,
        env=copilot.program.environment,
        cwd=copilot.program.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while app.read_text() != "port = 2\n":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    end.touch()  # for the shell, which has a process group of its own
    (writer,) = sessions(copilot) - {reader}
    copilot.program.say("go on", f"--resume={writer}")
    events = (
        copilot.program.home / ".copilot" / "session-state" / writer / "events.jsonl"
    ).read_text()
    before = len(copilot.model.requests)
    copilot.program.say("and now?", f"--resume={reader}")
    told = "\n".join(str(request.body) for request in copilot.model.requests[before:])
    assert '"model":"resumed"' in events
    assert '! app: edited just now by "change the port", after you read it' in told
