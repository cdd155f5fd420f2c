"""`session-memory completion`: the real shells complete by its scripts."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
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
    "read --include": [],  # for people, and hidden
}


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path / "user")


def script(machine: StoreUser, shell: str) -> Path:
    done = machine.run("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    path = machine.home / "_session-memory"
    path.write_text(done.stdout)
    return path


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


def test_bash_completes_commands_actions_options_and_their_values(machine: StoreUser) -> None:
    source = script(machine, "bash")
    complete = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_session_memory; echo "${COMPREPLY[*]}"'
    for typed, expected in TYPED.items():
        words = ["session-memory", *typed.split()]
        done = machine.run_command(shell("bash"), "-c", complete, str(source), *words)
        assert (done.stdout.split(), done.stderr) == (expected, ""), typed
    done = machine.run_command(shell("bash"), "-c", complete, str(source), "session-memory", "")
    assert done.stdout.split() == list(COMMANDS)


def test_fish_completes_the_same(machine: StoreUser) -> None:
    source = script(machine, "fish")
    for typed, expected in TYPED.items():
        code = f'source {source}; complete --do-complete "session-memory {typed}"'
        done = machine.run_command(shell("fish"), "--no-config", "-c", code)
        completed = [line.partition("\t")[0] for line in done.stdout.splitlines()]  # a description is behind each
        assert (sorted(completed), done.stderr) == (sorted(expected), ""), typed


def test_zsh_completes_the_same_from_its_first_time_on(machine: StoreUser) -> None:
    zsh = shell("zsh")
    source = script(machine, "zsh")
    controller, worker = pty.openpty()
    environ = {**machine.environment, "TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(
        [zsh, "-f", "-i"], stdin=worker, stdout=worker, stderr=worker, env=environ, start_new_session=True
    )
    try:
        os.write(
            controller, f"fpath+=({source.parent}); autoload -U compinit; compinit -u -D; PS1=READ; PS1+=Y\n".encode()
        )
        until(controller, "READY")
        os.write(controller, b"session-memory export --format h\t")
        until(controller, "html ")
    finally:
        process.kill()
        process.wait()
        os.close(worker)
        os.close(controller)


def until(controller: int, expected: str, seconds: float = 20) -> None:
    """Reads what a terminal shows until that is in it; fails if it takes longer."""
    said, deadline = "", time.monotonic() + seconds
    while expected not in said:
        assert select.select([controller], [], [], max(0, deadline - time.monotonic()))[0], said
        said += os.read(controller, 65536).decode(errors="replace")
