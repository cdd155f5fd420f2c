"""Real shells with the completion script of `session-memory`, on terminals of their own."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_scene import COMMAND, StoreUser


def script(machine: StoreUser, shell: str) -> Path:
    """Return the file with the script that `completion` prints."""
    done = machine.run("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    path = machine.home / "_session-memory"
    path.write_text(done.stdout)
    return path


def shell(name: str) -> str:
    """Return the path of a shell, or skip the test."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed here")
    return path


def put_program(home: Path) -> dict[str, str]:
    """Put `session-memory` into a directory below `home`; return the variables with which a shell
    finds the program."""
    program = home / "bin" / "session-memory"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{COMMAND}" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.defpath}"}


def completed_by_bash(
    machine: StoreUser, source: Path, line: list[str], **environ: str
) -> list[str]:
    """Return what bash puts in place of the last word."""
    code = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_session_memory; printf "%s\\n" "${COMPREPLY[@]}"'
    done = machine.run_command(
        shell("bash"), "-c", code, str(source), "session-memory", *line, **environ
    )
    assert done.stderr == "", line
    return [each for each in done.stdout.splitlines() if each]


def completed_by_fish(machine: StoreUser, source: Path, line: str, **environ: str) -> list[str]:
    """Return what fish offers for the last word, without descriptions."""
    quoted = line.replace("\\", "\\\\").replace("'", "\\'")
    code = f"source {source}; complete --do-complete 'session-memory {quoted}'"
    done = machine.run_command(shell("fish"), "--no-config", "-c", code, **environ)
    assert done.stderr == "", line
    return [each.partition("\t")[0] for each in done.stdout.splitlines()]


class TypedShell:
    """A shell on a terminal, at its prompt."""

    def __init__(self, controller: int) -> None:
        self._controller = controller

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def wait_for(self, expected: str, seconds: float = 20) -> str:
        """Return what the terminal shows until that is in it; fail if it takes longer."""
        said, deadline = "", time.monotonic() + seconds
        while expected not in said:
            assert select.select([self._controller], [], [], max(0, deadline - time.monotonic()))[
                0
            ], said
            said += os.read(self._controller, 65536).decode(errors="replace")
        return said


@contextmanager
def typed_shell(
    command: list[str], environ: dict[str, str], cwd: Path, setup: str
) -> Iterator[TypedShell]:
    """Start an interactive shell, which runs `setup` first."""
    controller, worker = pty.openpty()
    environ = {**environ, "TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(
        command,
        stdin=worker,
        stdout=worker,
        stderr=worker,
        env=environ,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        typed = TypedShell(controller)
        typed.type(f"{setup}; PS1=READ; PS1+=Y\n")
        typed.wait_for("READY")
        yield typed
    finally:
        process.kill()
        process.wait()
        os.close(worker)
        os.close(controller)
