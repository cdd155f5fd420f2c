"""install.py and the program it sets up: its environment, its packages, its command."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest
import yaml
from install_machine import (
    PYTHON,
    REPOSITORY,
    Machine,
    agent_home,
    compiled_copy_of_repository,
    told,
    tree,
    used_machine,
)

from session_memory.app.install import _program_directory as program_directory
from session_memory.app.install import environment
from session_memory.app.install._program_directory import remove_replaced, replace_directory
from session_memory.common.system.terminal import Terminal
from session_memory.sessions.settings.program import ProgramPaths


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


def test_without_a_package_index_all_that_needs_none_is_installed(bare_machine: Machine) -> None:
    bare_machine.has_program().has_claude_code()
    done = bare_machine.install(examples=True)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert (
        "Not installed: orjson, pyyaml, apsw, rich, shtab, watchfiles, jinja2, markdown-it-py, pygments, starlette, uvicorn (no package"
        in said
    )
    assert "To install them, while a package index can be reached: python3" in said
    assert "nothing is stored or searched" in said
    assert '- "ship it" (1m ago, 2 messages): last: "Shipped."' in done.stdout
    assert bare_machine.hook_command().startswith(
        f"{bare_machine.program_dir}/env/bin/python -I -S "
    )


def test_where_no_environment_can_be_made_the_hooks_run_with_the_real_interpreter(
    bare_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_make_venv", lambda directory: "no module named venv")
    bare_machine.program_dir.mkdir(parents=True)
    paths = ProgramPaths(bare_machine.program_dir, bare_machine.home / ".local" / "bin")
    made = environment.ensure_environment(
        paths, REPOSITORY / "requirements.lock", Terminal(bare_machine.environ)
    )
    assert (made.state, made.python) == ("missing", PYTHON)
    assert made.problems["basic"] == "no module named venv"


@pytest.mark.slow
def test_the_environment_holds_the_pinned_versions_and_nothing_else(bare_machine: Machine) -> None:
    bare_machine.has_claude_code()
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environ = {**{name: bare_machine.environ[name] for name in ("HOME", "PATH", "LANG")}, **index}
    command = [PYTHON, str(REPOSITORY / "install.py"), "--json"]
    done = subprocess.run(
        command, env=environ, cwd=bare_machine.home, capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    if environment.NO_INDEX in result["environment"]["problems"].values():
        pytest.skip("no package index can be reached from here")
    assert result["environment"]["missing"] == []
    pip = [PYTHON, "-m", "pip", "--python", result["environment"]["python"]]
    frozen = subprocess.run(
        [*pip, "freeze"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {_canonical(pin) for pin in frozen} <= set(_pins())
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    assert not (bare_machine.home / ".cache").exists()
    environment_bytes = sum(
        path.lstat().st_size for path in (bare_machine.program_dir / "env").rglob("*")
    )
    assert environment_bytes < 60e6
    config = bare_machine.home / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    config.write_text(yaml.safe_dump({"sessions": {"ship it": {"ignore": True}}}))
    assert "ship it" not in told(bare_machine.installed())[0]


def test_the_installed_command_takes_in_what_there_is_and_finds_it(bare_machine: Machine) -> None:
    apsw = pytest.importorskip("apsw")
    bare_machine.has_environment().has_program().has_claude_code()
    bare_machine.installed()
    [packages] = (bare_machine.program_dir / "env" / "lib").glob("python*/site-packages")
    (packages / "apsw").symlink_to(Path(apsw.__file__).parent)
    command = str(bare_machine.program_dir / "bin" / "session-memory")
    found = bare_machine.run(command, "search", "cart")
    assert found.returncode == 0, found.stderr
    assert "A **cart**" in found.stdout or "the **cart** empty" in found.stdout


def test_the_installed_hook_of_a_session_s_start_has_what_was_said_taken_in(
    bare_machine: Machine,
) -> None:
    apsw = pytest.importorskip("apsw")
    project_dir = bare_machine.has_environment().has_program().has_claude_code()
    bare_machine.installed()
    [packages] = (bare_machine.program_dir / "env" / "lib").glob("python*/site-packages")
    (packages / "apsw").symlink_to(Path(apsw.__file__).parent)
    hooks = json.loads(bare_machine.settings.read_bytes())["hooks"]["SessionStart"]
    command = next(
        one["command"]
        for group in hooks
        for one in group["hooks"]
        if "session_start" in one["command"]
    )
    event = {
        "session_id": "a",
        "transcript_path": f"{project_dir}/a.jsonl",
        "cwd": "/srv/shop",
        "source": "startup",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps({**event, "hook_event_name": "SessionStart"}),
        text=True,
        env=bare_machine.environ,
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    runs = bare_machine.home / ".session-memory/state/upkeep.json"
    deadline = time.monotonic() + 60
    while not (runs.exists() and json.loads(runs.read_text())["runs"][-1]["ended"]):
        assert time.monotonic() < deadline, "no upkeep"
        time.sleep(0.05)
    assert json.loads(runs.read_text())["runs"][-1]["files"] == 2


def test_the_lock_pins_exactly_one_version_of_all_that_is_asked_for() -> None:
    names = [pin.partition("==")[0] for pin in _pins()]
    assert len(set(names)) == len(names)
    declared = (REPOSITORY / "pyproject.toml").read_text()
    wanted = re.findall(r"^(?:dependencies|sdk) = (\[.*?\])", declared, re.MULTILINE | re.DOTALL)
    assert len(wanted) == 2
    asked = {re.split("[<>=~]", name)[0] for some in wanted for name in ast.literal_eval(some)}
    assert asked == set(environment.names_of([*environment.PARTS, "sdk"]))
    assert asked <= set(names)


def _pins() -> list[str]:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    return [
        _canonical(line.partition(" ;")[0]) for line in lines if line and not line.startswith("#")
    ]


def _canonical(pin: str) -> str:
    name, equal, version = pin.partition("==")
    assert equal, pin
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


@pytest.mark.slow
def test_what_the_graph_needs_is_installed_where_it_is_asked_for_and_stays(
    machine: Machine, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    for name, version in (("graphiti_core", "0.32.0"), ("httpx", "0.28.0")):
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "")
            provides = "Provides-Extra: kuzu\n"
            wheel.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{provides}",
            )
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")
    done = machine.install("--with", "graphiti")
    assert "Not installed: graphiti-core[kuzu]>=0.31.1, httpx>=0.27 (no package index" in " ".join(
        done.stdout.split()
    )
    assert "install.py --with graphiti" in " ".join(done.stdout.split())
    result = json.loads(
        machine.install(
            "--with", "graphiti", "--json", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index)
        ).stdout
    )
    assert (result["environment"]["state"], result["environment"]["problems"]) == ("added", {})
    python = result["environment"]["python"]
    assert machine.run(python, "-c", "import graphiti_core, httpx").returncode == 0
    assert machine.installed()["environment"]["state"] == "ready"
    assert (
        "graphiti"
        in json.loads((machine.program_dir / "env/session-memory.json").read_text())["groups"]
    )


@pytest.mark.slow
def test_the_agent_sdk_is_installed_only_if_a_person_asks_for_it(bare_machine: Machine) -> None:
    bare_machine.has_program().has_claude_code()
    assert "claude-agent-sdk" not in " ".join(bare_machine.install().stdout.split())
    new = ["new", "anna", "--template", "agent-sdk"]
    said = " ".join(bare_machine.install(*new).stdout.split())
    assert "croniter" not in said
    command = f"session-memory new {bare_machine.home}/anna --template agent-sdk --with sdk"
    assert (
        f"runs on claude-agent-sdk (about 360 MB), which is not installed. Install it first: {command} "
        in said
    )
    for words in (["--with", "sdk"], [*new, "--with", "sdk"]):
        said = " ".join(bare_machine.install(*words).stdout.split())
        assert "claude-agent-sdk, croniter (no package index" in said
        assert "--with sdk" in said


def test_a_command_of_that_name_which_is_not_ours_is_left_alone(machine: Machine) -> None:
    theirs = machine.home / ".local" / "bin" / "session-memory"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    result = machine.installed()
    assert theirs.read_text() == "theirs"
    assert "belongs to another program and was left alone" in result["notes"][0]
    machine.install("--uninstall")
    assert theirs.read_text() == "theirs"


def test_a_bin_directory_that_is_not_on_the_path_is_told_of(machine: Machine) -> None:
    done = machine.install(PATH="/usr/bin:/bin")
    assert "~/.local/bin is not on your PATH" in done.stdout
    assert '      export PATH="$HOME/.local/bin:$PATH"' in done.stdout.splitlines()
    assert "    ~/.local/bin/session-memory" in done.stdout.splitlines()


def test_an_update_has_no_moment_without_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_directory, "HOOK_SECONDS", 0.0)
    at = tmp_path / "app"
    missed: list[str] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            try:
                os.stat(at / "hook.py")
            except OSError as error:
                missed.append(str(error))

    for turn in range(200):
        # between two updates lies more time than somebody takes who is on the way through the link
        if turn % 50 == 0:
            time.sleep(0.3)
            remove_replaced(at)
        built = tmp_path / f"app-{turn}"
        built.mkdir()
        (built / "hook.py").write_text(str(turn))
        replace_directory(built, at)
        if turn == 0:
            reader = threading.Thread(target=look)
            reader.start()
    is_over.set()
    reader.join()
    assert missed == []
    assert {path.name for path in tmp_path.iterdir()} == {
        "app",
        *[f"app-{turn}" for turn in range(149, 200)],
    }


def test_a_copy_of_a_home_that_followed_links_is_installed_into(machine: Machine) -> None:
    """As `cp -rL` and `rsync -L` make it: directories instead of links."""
    shutil.rmtree(machine.program_dir / "env")
    (machine.program_dir / "env").mkdir()
    app = machine.program_dir / "app"
    copy = shutil.copytree(app.resolve(), machine.home / "copy")
    (copy / ".stamp").write_text("of an older version")
    app.unlink()
    copy.rename(app)
    done = machine.install()
    assert "Is a directory" not in done.stderr
    assert (machine.program_dir / "env").is_symlink()
    assert (machine.program_dir / "app").is_symlink()
    assert "user_prompt_submit.py" in machine.hook_command()


def test_the_installed_program_is_compiled_for_the_interpreter_of_the_hooks(
    bare_machine: Machine,
) -> None:
    bare_machine.has_environment().has_claude_code()
    assert bare_machine.installed()["program_changed"] is True
    app = bare_machine.program_dir / "app"
    tag = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    assert (
        app / "session_memory" / "awareness" / "events" / "__pycache__" / f"prompt.{tag}.pyc"
    ).is_file()
    assert (
        app
        / "session_memory"
        / "sessions"
        / "runtimes"
        / "claude"
        / "__pycache__"
        / f"records.{tag}.pyc"
    ).is_file()
    assert (app / "prompt.bundle").read_bytes().startswith(MAGIC_NUMBER)


def test_homes_can_be_added_and_left_with_the_installed_command_alone(
    machine: Machine, tmp_path: Path
) -> None:
    machine.source = compiled_copy_of_repository(tmp_path / "clone")
    machine.install()
    shutil.rmtree(machine.source)
    agent = agent_home(machine.home / "agent")
    before = tree(agent)
    assert machine.run("session-memory", "install", "--home", str(agent)).returncode == 0
    assert "user_prompt_submit.py" in (agent / ".claude" / "settings.json").read_text()
    assert machine.run("session-memory", "uninstall", "--home", str(agent)).returncode == 0
    assert tree(agent) == before
    assert machine.run("session-memory", "uninstall").returncode == 0
    assert not machine.program_dir.exists()
    assert not machine.settings.exists()


def test_pip_is_not_started_where_all_is_installed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "Installers", lambda *_: pytest.fail("pip was started"))
    paths = ProgramPaths(machine.program_dir, machine.program_dir / "bin")
    found = environment.ensure_environment(
        paths, REPOSITORY / "requirements.lock", Terminal(machine.environ)
    )
    assert (found.state, found.problems) == ("ready", {})


def test_a_copy_of_the_repository_that_is_not_whole_is_refused(
    machine: Machine, tmp_path: Path
) -> None:
    machine.source = tmp_path / "part"
    for name in ("session_memory", "install.py"):
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copyfile
        machine.source.mkdir(exist_ok=True)
        copy(REPOSITORY / name, machine.source / name)
    done = machine.install()
    assert (done.returncode, "hooks/hooks.json is missing" in done.stderr) == (1, True)


def test_an_install_notes_the_strategies_that_packages_of_the_environment_bring(
    machine: Machine,
) -> None:
    env = machine.program_dir / "env"
    [site] = env.glob("lib/python3*/site-packages")
    package = site / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[session_memory.strategies]\nother = other:Other\n")
    machine.installed()
    noted = json.loads((machine.home / ".session-memory/state/packages.json").read_text())
    assert list(noted.values()) == [{"other": "other:Other"}]
    assert os.path.realpath(next(iter(noted))) == os.path.realpath(env)
