"""With too little memory, a command ends with one line about it, and loses nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from records import exchange
from store_scene import COMMAND, MONDAY, StoreUser

resource = pytest.importorskip("resource")
MEGABYTES = (20, 24, 36)
SAID = "there is not enough memory"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    user = StoreUser(tmp_path_factory.mktemp("memory") / "user")
    user.session(
        "a",
        *[
            one
            for turn in range(50)
            for one in exchange(f"cherry {turn}", "a" * 2000, at=MONDAY + turn)
        ],
    )
    assert user.run("ingest").returncode == 0
    return user


@pytest.mark.parametrize(
    "command", ["ingest", "search cherry", "doctor store", "sessions", "process", "status", "costs"]
)
def test_a_command_without_enough_memory_says_so_in_one_line(machine, command):
    for size in MEGABYTES:
        limit = size << 20
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *command.split()],
            env=machine.environment,
            cwd=machine.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        assert "Traceback" not in done.stderr, f"{size} MB: {done.stderr}"
        if SAID in done.stderr:
            assert done.returncode == 1
            assert len(done.stderr.splitlines()) <= 2
    assert machine.run("search", "cherry 7").returncode == 0
