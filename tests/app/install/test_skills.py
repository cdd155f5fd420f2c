"""The commands that the skills teach, run verbatim by the real runtime in each kind of install."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import records
from clients.claude import Claude
from clients.claude_plugin import ClaudePlugin, wait_until
from clients.pi import Pi
from fakes.fake_llm import FakeLLM
from install_machine import REPOSITORY, Machine, new_home, prepared_machine
from skills_scene import (
    ANSWER,
    NAME,
    NEEDS_A_STORE,
    SKILLS,
    check_all,
    commands_in,
    expected,
    link_packages,
    make_archive,
    make_past,
    past,
    results_in,
    run_in_claude,
    shown_by_skills,
    skill_texts,
)

ALLOWED = ("--allowedTools", "Bash", "Skill")


@pytest.fixture
def user(bare_claude: Claude) -> Claude:
    """Somebody who uses Claude Code and has a past."""
    make_past(bare_claude)
    return bare_claude


def machine_of(claude: Claude) -> Machine:
    """The user's machine, with a private environment that has its packages."""
    machine = prepared_machine(claude.home)
    link_packages(machine.program_dir / "env")
    return machine


def test_an_install_lets_a_person_s_agent_run_what_the_skills_teach_without_asking_and_nothing_else(
    user: Claude,
) -> None:
    machine_of(user).installed("--home", str(user.config_dir), "--allow")
    texts = skill_texts(user.config_dir / "skills")
    check_all(
        [one for text in texts for one in commands_in(text)],
        lambda commands: run_in_claude(user, commands),
    )
    program = user.home / ".local/share/session-memory"
    command = str(program / "bin/session-memory")
    refused = [
        f"{command} memories forget x",
        f"{command} process",
        f"{command} host run x",
        f"{command} config forget x",
        f"{command} searching",
        f"{command} uninstall --purge --yes",
        f"{command} search x; touch made",
        f"{command} search $(touch made)",
        f"{command} search x > made",
        f"PATH=/x {command} search x",
        f"{program}/env/bin/python -I -S -c pass",
        f"cat {user.home}/.claude.json",
    ]
    all_shown, all_said = shown_by_skills(user, SKILLS, commands=refused)
    for text, shown in zip(texts, all_shown, strict=True):
        assert text.partition("\n# ")[2] in shown
    for said, one in zip(all_said, refused, strict=True):
        assert re.search("approval|blocked|can't be checked", said), f"{one}\n{said}"
    assert not (user.project / "made").exists()


def offered(claude: Claude, command: str) -> str:
    """For which commands Claude Code offers not to ask again, where an agent runs one."""
    claude.api.reset()
    claude.api.replies = [{"tools": [{"name": "Bash", "input": {"command": command}}]}, "done"]
    with claude.terminal("--permission-mode", "default") as terminal:
        terminal.enter("look into the past")
        terminal.wait(
            lambda: "again" in terminal.text() and "No" in terminal.text(), "the question"
        )
        return "".join(terminal.text().partition("again")[2].partition("No")[0].split())


def test_without_the_rules_claude_code_asks_and_offers_to_allow_a_skill_s_program_by_its_own_path(
    user: Claude,
) -> None:
    """Not by that of an interpreter, with which every program would be."""
    machine_of(user).installed("--home", str(user.config_dir))
    program = f"{user.home}/.local/share/session-memory/bin/session-memory"
    texts = [
        [one for one in commands_in(text) if not one.startswith("grep")]
        for text in skill_texts(user.config_dir / "skills")
    ]
    assert all(shlex.split(one)[0] == program for commands in texts for one in commands)
    assert "This command requires approval" in run_in_claude(user, texts[0][:1])[0]
    for command, *_ in texts:
        offer = offered(user, command)
        assert program in offer, offer
        assert "python" not in offer


@pytest.mark.slow
def test_an_agent_of_the_sdk_s_template_runs_what_its_skills_teach_without_asking(
    user: Claude,
) -> None:
    machine = machine_of(user)
    (site_packages,) = machine.program_dir.glob("env/lib/python*/site-packages")
    (site_packages / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    home = new_home(machine, "agent-sdk")
    transcript = (
        user.config_dir
        / "projects"
        / re.sub("[^A-Za-z0-9]", "-", str(home))
        / f"{records.new_id()}.jsonl"
    )
    records.write(transcript, *past(str(home)))
    (home / f".session-memory/sessions/{NAME}.json").write_text(
        json.dumps({"sessionId": transcript.stem})
    )
    make_archive(transcript, home / "conversations")

    by_tool = []

    def run(commands: list[str]) -> list[str]:
        user.api.reset()
        calls: list[dict[str, Any]] = [
            {"name": "Bash", "input": {"command": one}} for one in commands
        ]
        search = {"name": "mcp__sessions__search_sessions", "input": {"query": "kyoto"}}
        user.api.replies = [{"tools": [search, *calls]}, "done"]
        done = subprocess.run(
            [home / "agent.py", "look into the past"],
            env=user.environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        by_tool.append(results_in(user.api.prompts()[-1])[-len(commands) - 1])
        return results_in(user.api.prompts()[-1])[-len(commands) :]

    user.environment["PATH"] = f"{machine.program_dir}/env/bin:{user.environment['PATH']}"
    check_all(
        [one for text in skill_texts(home / ".claude/skills") for one in commands_in(text)], run
    )
    assert "kyoto" in by_tool[-1]


def installed_plugin(plugin: ClaudePlugin) -> list[str]:
    """The commands as the plugin's skills give them to the model."""
    make_past(plugin.claude)
    plugin.install()
    texts, _ = shown_by_skills(
        plugin.claude, [f"session-memory:{name}" for name in SKILLS], *ALLOWED
    )
    return [
        one
        for text in texts
        for one in commands_in(text.partition("\n# ")[2].partition("<system-reminder>")[0])
    ]


def test_a_plugin_alone_reads_archives_and_runs_all_that_its_skills_teach_when_it_is_set_up(
    plugin: ClaudePlugin,
) -> None:
    """Its commands are offered by their path, and find archives where their person keeps them."""
    claude, commands = plugin.claude, installed_plugin(plugin)
    usual, chosen = (
        claude.home / ".session-memory/conversations",
        claude.home / "else where/conversations",
    )
    chosen.parent.mkdir()
    usual.rename(chosen)
    claude.environment["SESSION_MEMORY_DIR"] = str(chosen.parent)
    check_all(commands, lambda them: run_in_claude(claude, them, *ALLOWED), has_store=False)
    del claude.environment["SESSION_MEMORY_DIR"]
    # sessions that ended meanwhile were archived there
    shutil.copytree(chosen, usual, dirs_exist_ok=True)
    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    link_packages(plugin.data_dir / "env")
    check_all(commands, lambda them: run_in_claude(claude, them, *ALLOWED))
    scripts = [one for one in commands if "scripts/" in one]
    assert all("scripts/memory.py" in one for one in scripts)
    offer = offered(claude, scripts[0])
    assert "scripts/memory.py" in offer, offer
    assert "python" not in offer


@pytest.mark.slow
def test_a_plugin_beside_an_install_runs_all_that_its_skills_teach(plugin: ClaudePlugin) -> None:
    machine_of(plugin.claude).installed("--home", str(plugin.claude.config_dir), "--allow")
    commands = installed_plugin(plugin)
    check_all(commands, lambda them: run_in_claude(plugin.claude, them, *ALLOWED))


class PiUser:
    """A user of Pi who has a past."""

    def __init__(self, pi: Pi, llm: FakeLLM) -> None:
        self.pi = pi
        self.llm = llm
        self.session = records.PiSession(cwd=str(pi.project))
        self.session.name(NAME)
        for record in past(str(pi.project))[:2]:
            content = record["message"]["content"]
            if record["type"] == "user":
                self.session.user(content)
            else:
                self.session.assistant(ANSWER)

    def run(self, commands: list[str], *command: str) -> list[str]:
        """What Pi's tool bash returns for each command."""
        said = []
        for one in commands:
            done = subprocess.run(
                [*command, f"TOOL bash {json.dumps({'command': one})}"],
                cwd=self.pi.project,
                env=self.pi.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=150,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            (result,) = results_in(self.llm.requests[-1])[-1:]
            said.append(result)
        return said


def test_the_package_of_pi_runs_what_its_skills_teach_with_a_bare_python(
    bare_pi: Pi, fake_llm: FakeLLM
) -> None:
    user = PiUser(bare_pi, fake_llm)
    bare_pi.execute("install", str(REPOSITORY))
    folder = bare_pi.agent_dir / "sessions" / f"--{str(bare_pi.project)[1:].replace('/', '-')}--"
    make_pi_archive(user.session.write(folder), bare_pi.home / ".session-memory/conversations")
    commands = [one for text in skill_texts(REPOSITORY / "skills") for one in commands_in(text)]
    pi = [*bare_pi.command, "--model", "fake/fake-1", "-p"]
    wanted = [one for one in commands if not any(f" {part}" in one for part in NEEDS_A_STORE)]
    for command, said in zip(wanted, user.run(wanted, *pi)):
        assert expected(command) in said, f"{command}\n{said}"


def test_pi_runs_what_the_skills_of_an_install_teach(bare_pi: Pi, fake_llm: FakeLLM) -> None:
    machine = prepared_machine(bare_pi.home)
    link_packages(machine.program_dir / "env")
    machine.installed("--runtime", "pi")
    user = PiUser(bare_pi, fake_llm)
    folder = bare_pi.agent_dir / "sessions" / f"--{str(bare_pi.project)[1:].replace('/', '-')}--"
    make_pi_archive(user.session.write(folder), bare_pi.home / ".session-memory/conversations")
    commands = [
        one for text in skill_texts(bare_pi.home / ".agents/skills") for one in commands_in(text)
    ]
    wanted = [one for one in commands if not re.search(r" (read 214|errors|patterns)\b", one)]
    for command, said in zip(
        wanted, user.run(wanted, *bare_pi.command, "--model", "fake/fake-1", "-p")
    ):
        assert expected(command) in said, f"{command}\n{said}"


def test_an_agent_of_pi_s_template_runs_what_its_skills_teach(
    bare_pi: Pi, fake_llm: FakeLLM, tmp_path: Path
) -> None:
    machine = prepared_machine(bare_pi.home)
    link_packages(machine.program_dir / "env")
    home = new_home(machine, "pi")
    bare_pi.project = home
    user = PiUser(bare_pi, fake_llm)
    make_pi_archive(
        user.session.write(home / f".session-memory/pi-sessions/{NAME}"), home / "conversations"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pi").write_text(
        f'#!/bin/sh\nexec {shlex.join([*bare_pi.command, "--model", "fake/fake-1"])} "$@"\n'
    )
    (tmp_path / "bin/pi").chmod(0o755)
    bare_pi.environment["PATH"] = f"{tmp_path}/bin{os.pathsep}{os.defpath}"
    commands = [one for text in skill_texts(home / ".claude/skills") for one in commands_in(text)]
    wanted = [one for one in commands if not re.search(r" (read 214|errors|patterns)\b", one)]
    for command, said in zip(wanted, user.run(wanted, str(home / "agent"))):
        assert expected(command) in said, f"{command}\n{said}"


def make_pi_archive(transcript: Path, directory: Path) -> None:
    """The archive of a session of Pi."""
    from session_memory.history.archives.format import ArchiveStyle
    from session_memory.history.archives.writer import ArchiveSource, write_archive
    from session_memory.sessions.runtimes.table import runtime

    directory.mkdir(parents=True)
    source = ArchiveSource(transcript.stem.rpartition("_")[2], str(transcript), runtime("pi"))
    assert write_archive(source, str(directory), ArchiveStyle("Pi"), 0.0)
