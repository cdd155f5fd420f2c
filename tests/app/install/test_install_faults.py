"""install.py with faults: what it refuses and leaves untouched, and how it continues afterwards."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from shlex import quote

import pytest
from install_machine import MINE, REPOSITORY, Machine, agent_home, tree, used_machine

from session_memory.app.install import _home_changes as home_changes
from session_memory.app.install import program
from session_memory.app.install._installation import InstallRequest, install
from session_memory.app.install.program import locked
from session_memory.common.errors import SessionMemoryError
from session_memory.common.system.file_changes import CannotWriteError, FileChange
from session_memory.common.system.terminal import Terminal
from session_memory.sessions.settings.program import ProgramPaths


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


def test_a_settings_file_that_cannot_be_parsed_keeps_its_home_untouched_and_no_other(
    machine: Machine,
) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude" / "settings.json").write_text('{\n  "a" 1\n}\n')
    before = tree(machine.home)
    done = machine.install("--home", str(agent))
    assert done.returncode == 1
    assert f"{agent}/.claude/settings.json:2:7: expecting ':' delimiter" in done.stderr
    assert "Traceback" not in done.stderr
    assert tree(machine.home) == before
    done = machine.install("--home", str(machine.claude), "--home", str(agent), "--json")
    [refused] = json.loads(done.stdout)["refused"]
    assert (done.returncode, "expecting ':' delimiter" in refused["error"]) == (1, True)
    assert tree(agent) == {
        name[6:]: value for name, value in before.items() if name.startswith("agent/")
    }
    machine.hook_command()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_cannot_be_written_is_left_as_it_was(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude").chmod(0o500)
    before = tree(machine.home)
    done = machine.install("--home", str(agent))
    assert (done.returncode, tree(machine.home)) == (1, before)
    assert "cannot be written to" in done.stderr


def test_a_directory_that_is_no_home_is_refused_with_what_would_be_one(machine: Machine) -> None:
    (machine.home / "work").mkdir()
    before = tree(machine.home)
    done = machine.install("--home", str(machine.home / "work"))
    assert (done.returncode, tree(machine.home)) == (1, before)
    assert "it is neither an agent home nor a configuration directory of Claude Code" in done.stderr
    assert ".session-memory/sessions/" in done.stderr


def test_the_folder_around_a_runtime_s_directory_is_refused_with_what_to_give(
    machine: Machine,
) -> None:
    (machine.home / ".pi/agent").mkdir(parents=True)
    done = machine.install("--home", str(machine.home / ".pi"))
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert f"the directory of Pi is {machine.home}/.pi/agent" in said
    assert f"give that: --home {machine.home}/.pi/agent" in said


def test_a_home_of_pi_is_registered_by_its_directory(machine: Machine) -> None:
    agent = machine.home / "agent"
    (agent / ".session-memory" / "pi-sessions" / "main").mkdir(parents=True)
    assert machine.install("--home", str(agent)).returncode == 0
    assert str(agent) in json.loads((machine.program_dir / "installed.json").read_text())["homes"]


def test_a_hook_whose_program_is_gone_lets_the_prompt_through(machine: Machine) -> None:
    machine.install()
    command = machine.hook_command()
    shutil.rmtree(machine.program_dir / "app", ignore_errors=True)
    (machine.program_dir / "app").unlink()
    done = machine.run("/bin/sh", "-c", command)
    assert (done.returncode, done.stdout) == (0, "")  # 2 would drop the prompt


def test_entries_of_a_copy_elsewhere_are_replaced_and_a_users_own_hook_of_that_name_is_not(
    machine: Machine,
) -> None:
    copy = f"python3 -I -S {quote(str(REPOSITORY))}/hooks/user_prompt_submit.py"
    own = "python3 ~/.claude/hooks/user_prompt_submit.py"
    groups = [{"hooks": [{"type": "command", "command": command}]} for command in (copy, own)]
    machine.settings.write_text(json.dumps({"hooks": {"UserPromptSubmit": groups}}))
    machine.install()
    after = json.loads(machine.settings.read_text())["hooks"]["UserPromptSubmit"]
    commands = [group["hooks"][0]["command"] for group in after]
    assert commands[1] == own
    assert commands[0].startswith(str(machine.program_dir))
    assert len(commands) == 2


def test_a_lost_ledger_is_no_obstacle(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    ledger = machine.program_dir / "installed.json"
    ledger.unlink()
    assert machine.installed()["homes"][0]["settings"]["change"] == "unchanged"
    ledger.unlink()
    assert machine.install("--uninstall").returncode == 0
    assert machine.settings.read_text() == MINE
    assert not (machine.claude / "skills" / "sessions").exists()
    assert not machine.program_dir.exists()


def test_a_ledger_that_cannot_be_read_is_told_of(machine: Machine) -> None:
    machine.install()
    (machine.program_dir / "installed.json").write_text("{")
    done = machine.install()
    assert done.returncode == 1
    assert "installed.json: it cannot be read" in done.stderr
    assert "move it away and run install.py again" in done.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize("breaks_at", range(3))
def test_an_install_that_broke_off_can_be_taken_back(machine: Machine, breaks_at: int) -> None:
    machine.settings.write_text(MINE)
    shutil.rmtree(machine.home / ".local" / "bin", ignore_errors=True)
    before = {
        name: value
        for name, value in tree(machine.home).items()
        if not name.startswith(".local/share/s")
    }
    _install_until(breaks_at, machine)
    assert machine.install("--uninstall").returncode == 0
    assert tree(machine.home) == before


@pytest.mark.sample(1)
@pytest.mark.parametrize("breaks_at", range(3))
def test_an_install_that_broke_off_can_be_finished(machine: Machine, breaks_at: int) -> None:
    machine.settings.write_text(MINE)
    _install_until(breaks_at, machine)
    assert machine.installed()["homes"][0]["notes"] == []
    machine.hook_command()
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE


def _install_until(breaks_at: int, machine: Machine) -> None:
    """Installs as far as the given number of changed files."""
    made = iter(range(breaks_at))
    real = FileChange.make

    def make(change: FileChange) -> None:
        if change.is_needed and next(made, None) is None:
            raise CannotWriteError("the disk is full")
        real(change)

    paths = ProgramPaths(machine.program_dir, machine.home / ".local" / "bin")
    terminal = Terminal(machine.environ)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(home_changes.FileChange, "make", make)
        with pytest.raises(CannotWriteError):
            install(
                InstallRequest([str(machine.claude)]),
                paths,
                machine.environ,
                terminal,
                is_allowed=False,
            )


def test_a_settings_file_that_changes_under_our_hands_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    change = FileChange(path, b"{}", b'{"hooks": {}}')
    path.write_text('{"model": "opus"}')
    with pytest.raises(SessionMemoryError, match="another program changed it just now"):
        change.make()
    assert path.read_text() == '{"model": "opus"}'


def test_only_one_install_is_at_work_at_a_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LOCK_WAIT_SECONDS", 0.1)
    paths = ProgramPaths(machine.program_dir, machine.home / ".local" / "bin")
    with locked(paths):
        done = machine.install()
    assert done.returncode == 1
    assert "another install is running" in done.stderr
    assert not machine.settings.exists()


def test_leaving_a_home_that_was_never_entered_is_refused(machine: Machine) -> None:
    machine.install()
    done = machine.install("--uninstall", "--home", str(agent_home(machine.home / "agent")))
    assert (done.returncode, "session-memory was not installed there" in done.stderr) == (1, True)


def test_a_link_into_a_directory_that_is_gone_keeps_only_its_home_from_an_install(
    machine: Machine,
) -> None:
    config = machine.home / ".hermes/config.yaml"
    config.parent.mkdir()
    config.symlink_to("../dotfiles/hermes.yaml")
    done = machine.install()
    assert done.returncode == 1
    assert (
        "Not installed: ~/.hermes/config.yaml: it is a link to ~/dotfiles/hermes.yaml, whose "
        "directory does not exist"
    ) in " ".join(done.stdout.split())
    assert [path.name for path in config.parent.iterdir()] == ["config.yaml"]
    assert machine.hook_command()  # of Claude Code
    (machine.home / "dotfiles").mkdir()
    machine.installed()
    machine.install("--uninstall")
    assert config.is_symlink()
    assert list((machine.home / "dotfiles").iterdir()) == []


def test_a_program_whose_path_is_not_utf_8_is_refused(machine: Machine) -> None:
    before = tree(machine.home)
    done = machine.install(XDG_DATA_HOME=str(machine.home / "odd-\udcff"))
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "its path is not UTF-8, so settings cannot name it" in done.stderr
    assert tree(machine.home) == before


FILES = [
    ".cline/plugins/session-memory.js",
    ".config/opencode/plugin/session-memory.js",
    ".copilot/hooks/session-memory.json",
    ".openclaw/extensions/session-memory/index.js",
    ".openclaw/extensions/session-memory/package.json",
    ".pi/agent/extensions/session-memory.ts",
]


@pytest.mark.parametrize("name", FILES)
def test_an_extension_of_somebody_else_s_with_our_name_is_left_alone(
    name: str, machine: Machine
) -> None:
    theirs = machine.home / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("{}")
    before = tree(machine.home / name.partition("/")[0])
    done = machine.install()
    said = f"Not installed: ~/{name}: session-memory did not write this file"
    assert (done.returncode, said in " ".join(done.stdout.split())) == (1, True)
    assert tree(machine.home / name.partition("/")[0]) == before
    assert machine.hook_command()  # of Claude Code
    (machine.program_dir / "installed.json").unlink()
    assert machine.install("--uninstall").returncode == 0
    assert tree(machine.home / name.partition("/")[0]) == before


@pytest.mark.parametrize("name", FILES)
def test_our_extension_is_known_without_the_ledger(name: str, machine: Machine) -> None:
    folder = machine.home / name.partition("/")[0]
    (machine.home / name).parent.parent.mkdir(parents=True)
    machine.installed()
    written = tree(folder)
    (machine.program_dir / "installed.json").unlink()
    machine.installed()
    assert tree(folder) == written
    (machine.program_dir / "installed.json").unlink()
    machine.install("--uninstall")
    assert not (machine.home / name).exists()


@pytest.mark.parametrize("has_ledger", [True, False])
def test_an_entry_for_a_plugin_of_openclaw_that_was_there_comes_back(
    has_ledger: bool, machine: Machine
) -> None:
    config = machine.home / ".openclaw/openclaw.json"
    config.parent.mkdir()
    before = '{"plugins": {"entries": {"session-memory": {"enabled": false}}}}\n'
    config.write_text(before)
    machine.installed("--runtime", "openclaw")
    assert "allowConversationAccess" in config.read_text()
    if not has_ledger:
        machine.install("--uninstall", "--home", str(config.parent))
        (machine.program_dir / "installed.json").unlink()
    assert machine.install("--uninstall").returncode == 0
    assert config.read_text() == before


def test_settings_of_openclaw_that_only_openclaw_can_read_are_in_doctor(machine: Machine) -> None:
    config = machine.home / ".openclaw/openclaw.json"
    config.parent.mkdir()
    config.write_text("{ agents: {} }\n")
    machine.installed("--runtime", "openclaw")
    code, wrong = machine.doctor()
    [said] = wrong
    assert (code, said) == (
        1,
        f"{config}:1:3: expecting property name enclosed in double quotes, so session-memory "
        "cannot see if OpenClaw runs its plugin",
    )
    assert wrong[said].startswith("add plugins.entries.session-memory: {")
    config.write_text("{ plugins: { entries: { 'session-memory': { enabled: true } } } }\n")
    assert machine.doctor() == (0, {})


def test_our_plugin_in_a_list_of_a_person_s_is_left_and_named(machine: Machine) -> None:
    config = machine.home / ".openclaw/openclaw.json"
    config.parent.mkdir()
    before = '{\n  // mine\n  "plugins": {"allow": ["voice", "session-memory"],},\n}\n'
    config.write_text(before)
    done = machine.install("--runtime", "openclaw")
    assert "~/.openclaw: extension session-memory; tools" in done.stdout
    done = machine.install("--uninstall")
    said = "session-memory in plugins.allow of ~/.openclaw/openclaw.json: delete it there"
    assert said in " ".join(done.stdout.split())
    assert config.read_text() == before
