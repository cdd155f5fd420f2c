"""The launcher ends its process at once, without freeing the interpreter: no output may be lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from session_memory.app.install.program import launcher_text
from session_memory.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
PIPE_BYTES = 4096  # a page, the smallest pipe that Linux makes


@pytest.fixture
def launcher(tmp_path: Path) -> list[str]:
    path = tmp_path / "session-memory"
    path.write_text(launcher_text(sys.executable, ROOT))
    return ["/bin/sh", str(path)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}


@pytest.fixture
def script(environment: dict[str, str]) -> bytes:
    """A long output, from an interpreter that ends as usual: the completion script of zsh."""
    code = "import sys; from session_memory.cli import main; sys.exit(main(['completion', 'zsh']))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, check=True)
    assert len(done.stdout) > 4 * PIPE_BYTES
    return done.stdout


def test_output_to_a_file_is_whole(
    launcher: list[str], environment: dict[str, str], script: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    with path.open("wb") as out:
        subprocess.run([*launcher, "completion", "zsh"], stdout=out, env=environment, check=True)
    assert path.read_bytes() == script


def test_output_to_a_full_pipe_is_whole(
    launcher: list[str], environment: dict[str, str], script: bytes
) -> None:
    fcntl = pytest.importorskip("fcntl")
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        pytest.skip("only Linux makes a pipe smaller")
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as pipe:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        command = [*launcher, "completion", "zsh"]
        with subprocess.Popen(command, stdout=writer, env=environment) as process:
            os.close(writer)
            parts = iter(lambda: pipe.read(100), b"")
            assert b"".join(parts) == script
        assert process.returncode == 0


def test_an_error_is_whole(launcher: list[str], environment: dict[str, str]) -> None:
    command = [*launcher, "search", "--since", "the day that never was"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("\n")
    assert "the day that never was" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_does_not_fit_is_an_error(
    launcher: list[str], environment: dict[str, str]
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*launcher, "completion", "zsh"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    assert done.returncode == 1
    assert b"no space left on the device" in done.stderr


def test_the_help_of_all_commands_is_whole(
    launcher: list[str], environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [*launcher, "help", "all"], capture_output=True, env=environment, check=True, text=True
    )
    assert [name for name in COMMANDS if f"  {name} " not in done.stdout] == []
