"""A machine that has 0.4.2, whose modules had other names, and gets the version of today."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest
from install_machine import REPOSITORY, Machine, pins_of

FORMER = "7c4634c"  # 0.4.2
WAIT_SECONDS = 150


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it was in 0.4.2."""
    directory = tmp_path_factory.mktemp("former")
    done = subprocess.run(
        ["git", "archive", FORMER], cwd=REPOSITORY, capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this clone has no history: {FORMER} is not in it")
    subprocess.run(["tar", "-x", "-C", directory], input=done.stdout, check=True)
    return directory


def link_all_packages(env: Path) -> None:
    """Give a virtual environment the packages of this one, except ours."""
    (site_packages,) = env.glob("lib/python*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "session_memory" not in package.name and not (site_packages / package.name).exists():
            (site_packages / package.name).symlink_to(package)


def pin_as(machine: Machine, source: Path) -> None:
    """Say that the machine's environment, which has all packages, has what `source` pins."""
    record = machine.program_dir / "env" / "session-memory.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "pins": pins_of(source)}))


def start_hook(machine: Machine) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/bin/sh", "-c", machine.hook_command()],
        env=machine.environ,
        cwd=machine.home,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answer(machine: Machine, hook: subprocess.Popen[str], transcript: Path, own: str) -> str:
    event = {
        "session_id": own,
        "transcript_path": f"{transcript.parent}/{own}.jsonl",
        "cwd": "/srv/shop",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hello",
    }
    printed, said = hook.communicate(json.dumps(event), timeout=WAIT_SECONDS)
    assert (hook.returncode, said) == (0, "")
    return printed
