"""The installed program recognises itself anywhere; any other copy names its way to add packages."""

from __future__ import annotations

import shutil
from pathlib import Path
from shlex import quote

from install_machine import PYTHON, REPOSITORY, Machine, tree

from session_memory.sessions.settings.program import how_to_add, how_to_add_module


def own_program(home: Path) -> Machine:
    """A machine with a program that lies in its own directory, as an install makes it."""
    machine = Machine(home).has_environment().has_program(is_own=True)
    machine.has_claude_code()
    return machine


def elsewhere(machine: Machine) -> tuple[Path, dict[str, str]]:
    """Move what the machine has of the program to a directory that only XDG_DATA_HOME names, and install."""
    data = machine.home / "data"
    data.mkdir()
    shutil.move(machine.program_dir, data / "session-memory")
    done = machine.run(PYTHON, str(REPOSITORY / "install.py"), XDG_DATA_HOME=str(data))
    assert done.returncode == 0, done.stdout + done.stderr
    return data / "session-memory", {"XDG_DATA_HOME": ""}


def test_a_program_elsewhere_checks_and_uninstalls_itself_where_nothing_names_its_place(
    tmp_path: Path,
) -> None:
    machine = own_program(tmp_path / "home")
    machine.settings.write_text('{"model":   "opus"}')
    before = tree(machine.claude)
    program_dir, environ = elsewhere(machine)
    command = str(program_dir / "bin" / "session-memory")
    doctor = machine.run(command, "doctor", "hooks", **environ)
    assert (
        doctor.returncode,
        f"{program_dir}/app".replace(str(machine.home), "~") in doctor.stdout,
    ) == (0, True), doctor
    done = machine.run(command, "uninstall", **environ)
    assert done.returncode == 0, done.stderr
    assert not program_dir.exists()
    assert tree(machine.claude) == before


def test_the_installed_program_names_its_install_for_a_missing_module(tmp_path: Path) -> None:
    machine = own_program(tmp_path / "home")
    machine.installed()
    code = (
        "import os, sys; sys.path.insert(0, os.path.realpath(sys.argv[1]));"
        "from session_memory.sessions.settings.program import how_to_add_module; print(*map(how_to_add_module, sys.argv[2:]), sep='\\n')"
    )
    modules = ("claude_agent_sdk", "graphiti_core.nodes", "zstandard", "uvicorn")
    done = machine.run(PYTHON, "-I", "-c", code, str(machine.program_dir / "app"), *modules)
    options = ("--with sdk", "--with graphiti", "--with zstd", "")
    assert done.stdout.splitlines() == [
        f"session-memory install {option}".rstrip() for option in options
    ], done.stderr


def test_a_clone_names_its_install_for_a_missing_module() -> None:
    script = quote(f"{REPOSITORY}/install.py")
    assert how_to_add("zstd") == f"python3 {script} --with zstd"
    assert how_to_add_module("yaml") == f"python3 {script}"


def test_no_advice_has_an_index_look_for_this_program() -> None:
    """An index may have anything under this name."""
    texts = [
        *REPOSITORY.glob("session_memory/**/*.py"),
        *REPOSITORY.glob("templates/**/*.py"),
        *REPOSITORY.glob("docs/**/*.md"),
    ]
    words = (
        "pip install session-memory",
        "pip install 'session-memory",
        "tool install session-memory",
        "uvx session-memory",
        "pipx install session-memory",
    )
    assert len(texts) > 300
    assert [(str(path), word) for path in texts for word in words if word in path.read_text()] == []
