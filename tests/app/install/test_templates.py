"""Homes made from templates: made, renewed and taken apart."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from install_machine import (
    AGENTS,
    REPOSITORY,
    TEMPLATES,
    Machine,
    at_a_terminal,
    new,
    new_home,
    prepared_machine,
    tree,
)

from session_memory.app.tools.permissions import HOME_COMMAND
from session_memory.sessions.settings.keys import sample


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return prepared_machine(tmp_path / "home")


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_person_is_asked_before_the_agent_sdk_is_installed(machine: Machine, answer: str) -> None:
    record = machine.program_dir / "env/session-memory.json"
    had = json.loads(record.read_text())
    record.write_text(
        json.dumps({**had, "groups": [name for name in had["groups"] if name != "sdk"]})
    )
    drawn = at_a_terminal(machine, answer, "new", f"{machine.home}/anna", "--template", "agent-sdk")
    asked = (
        "This agent runs on claude-agent-sdk (about 360 MB), which is not installed. Install it "
        "now? [y/N]"
    )
    assert asked in drawn
    command = f"new {machine.home}/anna --template agent-sdk --with sdk"
    assert (answer == "y") == (
        "Not installed: claude-agent-sdk, croniter" in " ".join(drawn.split())
    )
    assert (answer == "n") == (command in drawn)
    assert (machine.home / "anna/agent.py").exists()


def names(directory: Path) -> list[str]:
    """The files below a directory, without directories."""
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()
    )


SKILLS = [
    ".claude/skills/recall/SKILL.md",
    ".claude/skills/sessions/SKILL.md",
    "scripts/session-memory",
]


def test_a_home_holds_its_template_and_the_skills(machine: Machine) -> None:
    home = new_home(machine, "agent-sdk")
    assert names(home) == sorted(
        [".session-memory/config.yaml", "AGENTS.md", "CLAUDE.md", "agent.py", *SKILLS]
    )
    assert os.access(home / "agent.py", os.X_OK)
    home = new_home(machine, "pi", "bert")
    assert names(home) == sorted([".session-memory/config.yaml", "AGENTS.md", "agent", *SKILLS])
    assert os.access(home / "agent", os.X_OK)
    assert os.access(home / "scripts/session-memory", os.X_OK)


@pytest.mark.parametrize("name", ["recall", "sessions"])
def test_the_skills_of_templates_are_ours_with_the_command_of_the_home(name: str) -> None:
    skill = (REPOSITORY / "skills" / name / "SKILL.md").read_text()
    skill = skill.replace('"${CLAUDE_PLUGIN_ROOT}/scripts/memory.py"', HOME_COMMAND)
    skill = re.sub(r".*`CLAUDE_PLUGIN_ROOT`.*\n", "", skill)
    skill = skill.replace(
        '"${SESSION_MEMORY_DIR:-$HOME/.session-memory}/conversations"', "conversations"
    )
    assert (REPOSITORY / "templates/_base/.claude/skills" / name / "SKILL.md").read_text() == skill
    assert "CLAUDE_PLUGIN_ROOT" not in skill


@pytest.mark.parametrize("name", ["recall", "sessions"])
def test_a_skill_has_all_its_fields_for_readers_that_end_them_at_the_first_dashes(
    name: str,
) -> None:
    skill = (REPOSITORY / "skills" / name / "SKILL.md").read_text()
    fields = skill.split("---")[1]  # as skills-ref 0.1.1: findings/dashes-in-a-skill.sh
    assert re.findall(r"^([a-z]+): ", fields, re.MULTILINE) == [
        "name",
        "description",
        "compatibility",
    ]


def test_the_configuration_of_a_new_home_documents_every_key() -> None:
    assert (REPOSITORY / "templates/_base/.session-memory/config.yaml").read_text() == sample()


@pytest.mark.sample(1)
@pytest.mark.parametrize("template", TEMPLATES)
def test_who_an_agent_is_stays_its_own_and_the_rest_is_renewed(
    machine: Machine, template: str
) -> None:
    home = new_home(machine, template)
    agent = home / AGENTS[template]
    original = agent.read_bytes()
    (home / "AGENTS.md").write_text("I am Anna.\n")
    (home / ".session-memory/config.yaml").unlink()
    agent.write_bytes(original + b"# mine\n")
    done = new(machine, "anna", "--template", template)
    assert f"~/anna/{agent.name} has changed since it was installed" in " ".join(
        done.stdout.split()
    )
    assert (home / "AGENTS.md").read_text() == "I am Anna.\n"
    assert not (home / ".session-memory/config.yaml").exists()
    assert agent.read_bytes() == original
    assert agent.with_name(agent.name + ".bak").read_bytes() == original + b"# mine\n"
    before = tree(home)
    assert "unchanged" in new(machine, "anna", "--template", template).stdout
    assert tree(home) == before


def test_a_directory_with_something_else_is_refused_unless_told(machine: Machine) -> None:
    home = machine.home / "work"
    home.mkdir()
    (home / "agent.py").write_text("print('mine')\n")
    (home / "AGENTS.md").write_text("Mine.\n")
    before = tree(machine.home)
    done = new(machine, "work", "--template", "agent-sdk")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"session-memory: {home}: the directory has other content",
        "  --force adds the agent's files to the directory; a file that it replaces is kept as "
        ".bak",
    ]
    assert tree(machine.home) == before
    assert new(machine, "work", "--template", "agent-sdk", "--force").returncode == 0
    assert (home / "agent.py.bak").read_text() == "print('mine')\n"
    assert (home / "AGENTS.md").read_text() == "Mine.\n"


def test_an_agent_changes_its_runtime_only_when_told(machine: Machine) -> None:
    home = new_home(machine, "agent-sdk")
    done = new(machine, "anna", "--template", "pi")
    assert done.returncode == 1
    assert "it was made from the template agent-sdk" in done.stderr
    assert new(machine, "anna", "--template", "pi", "--force").returncode == 0
    assert (home / "agent").is_file()
    assert not (home / "agent.py").exists()
    assert (home / ".claude/skills/recall/SKILL.md").is_file()


def test_a_dry_run_makes_nothing(machine: Machine) -> None:
    before = tree(machine.home)
    done = new(machine, "anna", "--template", "pi", "--dry-run")
    assert done.returncode == 0
    assert "+++ " + str(machine.home / "anna/agent") in done.stdout
    assert tree(machine.home) == before


def test_the_result_comes_as_json(machine: Machine) -> None:
    foreseen = json.loads(new(machine, "anna", "--template", "pi", "--dry-run", "--json").stdout)
    result = json.loads(new(machine, "anna", "--template", "pi", "--json").stdout)
    assert (foreseen["dry_run"], result["dry_run"]) == (True, False)
    assert foreseen["files"] == result["files"]
    assert {"path": str(machine.home / "anna/agent"), "change": "added"} in result["files"]


def test_an_install_renews_the_homes_and_puts_no_hooks_in_them(machine: Machine) -> None:
    homes = [new_home(machine, "agent-sdk"), new_home(machine, "pi", "bert")]
    (homes[0] / "agent.py").unlink()
    (homes[1] / ".claude/skills/recall/SKILL.md").unlink()
    result = machine.installed()
    assert [home["kind"] for home in result["homes"]] == ["template", "template"]
    assert (homes[0] / "agent.py").is_file()
    assert (homes[1] / ".claude/skills/recall/SKILL.md").is_file()
    assert not list(machine.home.rglob("settings.json"))


def test_an_install_says_what_it_renewed(machine: Machine) -> None:
    new_home(machine, "agent-sdk")
    done = machine.install()
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  template     ~/anna: " in done.stdout


def test_doctor_misses_what_is_gone_from_a_home(machine: Machine) -> None:
    home = new_home(machine, "agent-sdk")
    assert machine.doctor() == (0, {})
    (home / "agent.py").unlink()
    assert machine.doctor() == (
        1,
        {f"{home}/agent.py is gone": f"session-memory new {home} --template agent-sdk"},
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("template", TEMPLATES)
def test_uninstalling_leaves_nothing_of_a_home_that_nobody_used(
    machine: Machine, template: str
) -> None:
    new_home(machine, template)
    done = machine.install("--uninstall")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(machine.home) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("purge", [False, True])
def test_uninstalling_leaves_what_is_the_users(
    machine: Machine, template: str, purge: bool
) -> None:
    home = new_home(machine, template)
    sessions = home / ".session-memory" / {"agent-sdk": "sessions", "pi": "pi-sessions"}[template]
    (sessions / "main").write_text("a session")
    (home / "AGENTS.md").write_text("I am Anna.\n")
    config = home / ".session-memory/config.yaml"
    config.write_text("max_characters: 300\n")
    done = machine.install("--uninstall", *(["--purge", "--yes"] if purge else []))
    assert (done.returncode, done.stderr) == (0, "")
    kept = ["AGENTS.md", str((sessions / "main").relative_to(home))]
    assert names(home) == sorted([*kept, *([] if purge else [".session-memory/config.yaml"])])


def test_the_installed_command_makes_the_same_home(machine: Machine) -> None:
    home = new_home(machine, "agent-sdk")
    before = tree(home)
    assert machine.install("--uninstall", "--home", str(home)).returncode == 0
    assert not home.exists()
    command = str(machine.program_dir / "bin" / "session-memory")
    assert machine.run(command, "new", str(home), "--template", "agent-sdk").returncode == 0
    assert tree(home) == before
