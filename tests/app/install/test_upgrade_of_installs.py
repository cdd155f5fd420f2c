"""Upgrades from 0.4.2 in every form of install, while its clients continue."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from app.install.test_template_agents import Agent, path_with
from clients.claude import Claude, activity
from clients.claude_plugin import PLUGIN, ClaudePlugin
from clients.pi import Pi
from fakes.fake_anthropic import FakeAnthropic
from install_machine import (
    MINE,
    PYTHON,
    REPOSITORY,
    Machine,
    compiled_copy_of_repository,
    copy_repository,
    make_bare_environment,
    tree,
)
from records import append, exchange
from upgrade_scene import answer, former, link_all_packages, pin_as, start_hook

from session_memory import __version__
from session_memory.app.install._pip_settings import uv_variables

__all__ = ["former"]  # a fixture


def lines_with(lines: list[str], *words: str) -> list[bool]:
    """For each word, whether a line has it."""
    return [any(word in line for line in lines) for word in words]


def upgrade(home: Path, copy: Path, *options: str) -> None:
    """Install today's version from a copy of the repository."""
    machine = Machine(home, compiled_copy_of_repository(copy))
    pin_as(machine, copy)
    done = machine.install(*options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_plugin_of_claude_code_goes_on(plugin: ClaudePlugin, former: Path) -> None:
    shutil.rmtree(plugin.source)
    shutil.copytree(former, plugin.source, symlinks=True)
    plugin.install()
    plugin.claude.run("plan the garden")
    second = plugin.claude.run("who is there?")
    assert lines_with(second.told, "plan the garden") == [True]
    shutil.rmtree(plugin.source)
    copy_repository(plugin.source)
    plugin.plugin("marketplace", "update", "session-memory")
    plugin.plugin("update", PLUGIN)
    assert __version__ in plugin.plugin("list")
    plugin.claude.run("water the dahlias")
    told = plugin.claude.run("and now?", "--resume", second.session_id).told
    assert lines_with(told, "water the dahlias", "plan the garden") == [True, False]


def test_a_pi_that_runs_goes_on(bare_pi: Pi, former: Path, tmp_path: Path) -> None:
    link_all_packages(Machine(bare_pi.home, former).has_environment().program_dir / "env")
    done = Machine(bare_pi.home, former).install()
    assert done.returncode == 0, done.stdout + done.stderr
    del bare_pi.environment["SESSION_MEMORY_PYTHON"]
    bare_pi.run("plan the garden")
    with bare_pi.rpc() as session:
        assert lines_with(session.prompt("who is there?").told, "plan the garden") == [True]
        upgrade(bare_pi.home, tmp_path / "today")
        bare_pi.run("water the dahlias")
        told = session.prompt("and now?").told
        assert lines_with(told, "water the dahlias", "plan the garden") == [True, False]
        bare_pi.run("prune the roses")
        told = session.prompt("what else?").told
        assert lines_with(told, "prune the roses", "water the dahlias") == [True, False]
    assert not list(bare_pi.home.rglob("hook.log"))


@pytest.mark.slow
def test_a_template_copied_by_hand_goes_on(
    bare_claude: Claude, api: FakeAnthropic, former: Path, tmp_path: Path
) -> None:
    machine = Machine(bare_claude.home, former).has_environment()
    (site_packages,) = machine.program_dir.glob("env/lib/python*/site-packages")
    (site_packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert machine.install().returncode == 0
    home = machine.home / "bella"
    for template in ("_base", "agent-sdk"):
        subprocess.run(["cp", "-r", f"{former}/templates/{template}/.", str(home)], check=True)
    path = path_with(tmp_path / "bin", python3=f'{shlex.quote(PYTHON)} -I "$@"')
    agent = Agent(home, {**bare_claude.environment, "PATH": path})
    agent.say("plan the garden")
    agent.say("--session", "discord", "who is there?")
    assert lines_with(activity(api.prompts()[-1]), "plan the garden") == [True]
    upgrade(machine.home, tmp_path / "today")
    agent.say("water the dahlias")
    agent.say("--session", "discord", "and now?")
    told = activity(api.prompts()[-1])
    assert lines_with(told, "water the dahlias", "plan the garden") == [True, False]
    assert "who is there?" in api.prompts()[-1].text  # the session went on


@pytest.mark.parametrize("way", ["wheel", pytest.param("uv tool", marks=pytest.mark.slow)])
def test_a_wheel_overwritten_by_another_goes_on(way: str, former: Path, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", former)
    machine.has_claude_code()
    machine.settings.write_text(MINE)
    other, own = sorted(machine.claude.rglob("*.jsonl"))
    before = tree(machine.home)
    link_all_packages(machine.has_environment().program_dir / "env")
    venv = tmp_path / "venv"
    make_bare_environment(venv)
    link_all_packages(venv)

    def put(repository: Path) -> str:
        """Build the repository's wheel, install it over what is there, and return its command."""
        dist = tmp_path / f"dist-{repository.name}"
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist]
        subprocess.run(build, cwd=repository, check=True, capture_output=True)
        (wheel,) = dist.iterdir()
        if way == "wheel":
            pip = [sys.executable, "-m", "pip", "--python", f"{venv}/bin/python", "install", "-q"]
            words = [*pip, "--no-deps", "--no-index", "--no-compile", "--force-reinstall", wheel]
            subprocess.run(words, check=True, capture_output=True)
            return f"{venv}/bin/session-memory"
        words = ["uv", "tool", "install", "--force", "--python", PYTHON, wheel]
        index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        environ = {"HOME": str(machine.home), "PATH": f"{sys.prefix}/bin:/usr/bin:/bin"}
        environ.update(uv_variables(index) or {})
        done = subprocess.run(words, env=environ, check=False, capture_output=True, text=True)
        if "could not be reached" in done.stderr or "Failed to fetch" in done.stderr:
            pytest.skip("no package index can be reached from here")
        assert done.returncode == 0, done.stderr
        return f"{machine.home}/.local/bin/session-memory"

    done = machine.run(put(former), "install")
    assert done.returncode == 0, done.stdout + done.stderr
    machine.prompt(own.parent, own.stem)
    hook = start_hook(machine)
    command = put(copy_repository(tmp_path / "today"))
    pin_as(machine, REPOSITORY)
    done = machine.run(command, "install")
    assert done.returncode == 0, done.stdout + done.stderr
    append(other, *exchange("and now?", "Answer one.", at=time.time()))
    assert "Answer one." in answer(machine, hook, other, own.stem)
    append(other, *exchange("and now?", "Answer two.", at=time.time()))
    told = machine.prompt(own.parent, own.stem)
    assert ("Answer two." in told, "Answer one." in told) == (True, False)
    assert machine.run(command, "--version").stdout.split()[-1] == __version__
    assert not list(machine.home.rglob("hook.log"))
    done = machine.run(command, "uninstall", "--purge", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    left = tree(machine.home)
    assert {name for name, content in before.items() if left.get(name) != content} == {
        str(other.relative_to(machine.home))
    }
