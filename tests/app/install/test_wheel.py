"""The wheel built from the repository makes the same homes as the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from clients.claude import Claude
from install_machine import (
    PYTHON,
    REPOSITORY,
    Machine,
    agent_home,
    copy_repository,
    make_bare_environment,
    tree,
)
from skills_scene import (
    check_all,
    commands_in,
    link_packages,
    make_past,
    run_in_claude,
    skill_texts,
)

from session_memory import __version__
from session_memory.app.install._pip_settings import uv_variables

BUILD_SECONDS = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the repository."""
    root = tmp_path_factory.mktemp("wheel")
    copy = copy_repository(root / "copy")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", root / "dist"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=BUILD_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (root / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command that `pip install` of the wheel puts on the PATH of an environment, which has
    nothing else."""
    venv = tmp_path_factory.mktemp("command") / "venv"
    make_bare_environment(venv)
    pips = (
        [python, "-m", "pip", "--python", f"{venv}/bin/python"]
        for python in (sys.executable, PYTHON)
    )
    for pip in pips:
        install = [*pip, "install", "-q", "--no-deps", "--no-index", "--no-compile", wheel]
        if subprocess.run(install, capture_output=True).returncode == 0:
            return f"{venv}/bin/session-memory"
    pytest.skip("there is no pip of version 22.3 or newer here")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a home of each kind."""
    machine = Machine(tmp_path / "home")
    machine.has_claude_code()
    agent_home(machine.home / "agent")
    return machine


def what_there_is(machine: Machine) -> dict[str, Any]:
    """All files of a machine, without what differs from one install to the next: times, and the
    private environment."""
    differs = ("/env", ".pyc", "/prompt.bundle")  # the latter two hold the times of sources
    found = {
        path: value
        for path, value in tree(machine.home).items()
        if not any(part in path for part in differs)
    }
    ledger = json.loads((machine.program_dir / "installed.json").read_text())
    for record in ledger["homes"].values():
        assert record.pop("installed_at") >= 0
    found[".local/share/session-memory/installed.json"] = ledger
    return found


def made_by(machine: Machine, program: list[str], install: list[str]) -> dict[str, Any]:
    """What `program` puts into homes that are there, and into new ones."""
    machine.has_environment()
    homes = ["--home", str(machine.claude), "--home", str(machine.home / "agent")]
    for words in (
        [*install, *homes],
        ["new", "anna", "--template", "agent-sdk"],
        ["new", "bert", "--template", "pi"],
    ):
        done = machine.run(*program, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    return what_there_is(machine)


def test_a_wheel_makes_the_same_homes_as_the_repository(machine: Machine, command: str) -> None:
    by_repository = made_by(
        machine.has_program(is_own=True), [PYTHON, str(REPOSITORY / "install.py")], []
    )
    assert machine.install("--uninstall").returncode == 0
    by_wheel = made_by(machine, [command], ["install"])
    assert by_wheel.keys() == by_repository.keys()
    assert [path for path in by_wheel if by_wheel[path] != by_repository[path]] == []


def test_a_wheel_says_its_version_and_takes_out_what_it_put_in(
    machine: Machine, command: str
) -> None:
    before = tree(machine.home)
    assert machine.run(command, "--version").stdout == f"session-memory {__version__}\n"
    # what the wheel would compile, as the test above shows
    machine.has_environment().has_program(is_own=True)
    assert machine.run(command, "install").returncode == 0
    assert "user_prompt_submit.py" in machine.settings.read_text()
    assert machine.run(command, "uninstall").returncode == 0
    left = tree(machine.home)
    assert {path: left[path] for path in left if not path.startswith(".local")} == before


def test_a_wheel_without_a_package_names_what_installs_it_where_it_runs(
    command: str, tmp_path: Path
) -> None:
    machine, venv = Machine(tmp_path / "home"), Path(command).parents[1]

    def hint() -> str:
        done = machine.run(command, "page", "--port", "8123")
        assert (done.returncode, "this needs " in done.stderr) == (
            1,
            True,
        ), done.stderr
        return done.stderr.splitlines()[1].strip()

    machine.home.mkdir()
    assert hint() == f"uv pip install --python {venv}/bin/python uvicorn"
    for mark, advice in (
        ("uv-receipt.toml", hint()),
        ("pipx_metadata.json", "pipx inject 'venv' uvicorn"),
    ):
        (venv / mark).touch()
        assert hint() == advice
        (venv / mark).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["uv tool", "pipx", "uvx"])
def test_one_command_gives_a_page_that_starts_and_hooks_that_need_no_cache(
    way: str, wheel: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "home")
    machine.has_claude_code()
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    settings = {**index, **(uv_variables(index) or {})}
    environ = {**{name: machine.environ[name] for name in ("HOME", "LANG")}, **settings}
    environ["PATH"] = f"{machine.home}/.local/bin:{sys.prefix}/bin:/usr/bin:/bin"
    tools = {
        "uv tool": ["uv", "tool", "install", "--python", PYTHON],
        "uvx": [],
        "pipx": ["pipx", "install"],
    }
    command = ["uvx", "--python", PYTHON, "--from", str(wheel), "session-memory"]
    if way != "uvx":
        done = subprocess.run([*tools[way], wheel], env=environ, capture_output=True, text=True)
        if "could not be reached" in done.stderr or "Failed to fetch" in done.stderr:
            pytest.skip("no package index can be reached from here")
        assert done.returncode == 0, done.stderr
        command = [f"{machine.home}/.local/bin/session-memory"]
    with subprocess.Popen(
        [*command, "page", "--no-browser"], env=environ, stdout=PIPE, stderr=PIPE, text=True
    ) as page:
        assert page.stdout
        assert page.stderr
        line = page.stdout.readline()
        page.terminate()
        assert "http://127.0.0.1:" in line, line + page.stderr.read()
    done = subprocess.run([*command, "install"], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    places = [
        machine.claude,
        machine.home / ".agents",
        machine.program_dir / "bin",
        machine.program_dir / "app",
    ]
    named = [
        str(path)
        for place in places
        for path in place.rglob("*")
        if path.is_file()
        and re.search(rb"/\.cache/uv|/archive-v\d|/pipx/|/uv/tools/", path.read_bytes())
    ]
    assert named == []
    links = [
        path.resolve() for path in (machine.program_dir / "env/bin").iterdir() if path.is_symlink()
    ]
    assert [str(path) for path in links if str(path).startswith(str(machine.home / ".cache"))] == []


@pytest.mark.slow
def test_an_agent_runs_what_the_skills_teach_that_a_wheel_installed(
    bare_claude: Claude, command: str
) -> None:
    make_past(bare_claude)
    machine = Machine(bare_claude.home).has_environment()
    link_packages(machine.program_dir / "env")
    done = machine.run(command, "install", "--home", str(bare_claude.config_dir), "--allow")
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [
        one for text in skill_texts(bare_claude.config_dir / "skills") for one in commands_in(text)
    ]
    check_all(commands, lambda them: run_in_claude(bare_claude, them))
