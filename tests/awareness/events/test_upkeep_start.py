"""The start of upkeep: a process of its own, which no fork of this one makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from install_machine import REPOSITORY

# A fork copies the locks that other threads hold, and never releases them in the child.
START = """
import os, sys, threading
def refuse(event, arguments):
    if event in ("os.fork", "os.forkpty"):
        os._exit(3)
sys.addaudithook(refuse)
sys.path.insert(0, sys.argv[1])
threading.Thread(target=threading.Event().wait, daemon=True).start()
from session_memory.awareness.events.upkeep_start import start_upkeep
from session_memory.sessions.settings.homes import environment, person_home
os.environ["SESSION_MEMORY_DIR"] = sys.argv[2]
home = person_home(os.environ)
os.makedirs(home.state_dir)
start_upkeep(home, "sessions")
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="upkeep does not start by itself here")
def test_upkeep_starts_without_a_fork_and_with_the_environment_as_it_is_now(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    command = [sys.executable, "-I", "-c", START, str(REPOSITORY), str(place)]
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    runs = place / "state" / "upkeep.json"
    deadline = time.monotonic() + 60
    while not (runs.exists() and json.loads(runs.read_text())["runs"][-1]["ended"]):
        assert time.monotonic() < deadline, "no upkeep"
        time.sleep(0.05)
