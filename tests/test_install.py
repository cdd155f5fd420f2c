"""install.py on a machine of its own: what it puts where, what it leaves alone, and that all of it can be undone."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import builders
import pytest
import yaml
from install_machine import PYTHON, REPOSITORY, Machine, agent_home, tree

from session_memory.errors import SessionMemoryError
from session_memory.setup import environment, home_changes
from session_memory.setup.file_changes import CannotWriteError, FileChange
from session_memory.setup.installing import install
from session_memory.setup.ledger import read_ledger
from session_memory.setup.lock import locked
from session_memory.setup.places import Places, put_in_place, remove_others
from session_memory.setup.screen import Screen

MINE = '{\n    "model": "opus",\n    "hooks": {\n        "Stop": [{"hooks": [{"type": "command", "command": "x"}]}]\n    }\n}\n'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose environment stands already, and where Claude Code was used."""
    machine = Machine(tmp_path / "home").has_environment()
    machine.has_claude_code()
    return machine


@pytest.fixture
def bare_machine(tmp_path: Path) -> Machine:
    """A machine with an empty home directory."""
    (tmp_path / "home").mkdir()
    return Machine(tmp_path / "home")


def told(result: dict[str, object]) -> list[str]:
    homes = result["homes"]
    assert isinstance(homes, list)
    return [home["trial"]["text"] for home in homes]


def test_it_ends_with_what_the_next_prompt_would_be_told(machine: Machine) -> None:
    done = machine.install()
    assert (done.returncode, done.stderr) == (0, "")
    assert "The next prompt of a new session in /srv/shop would be told:" in done.stdout
    assert '- ship it (5m ago, 2 messages): "ship it"; last: "Shipped."' in done.stdout
    assert re.search(r"The hook took \d+ ms; starting a Python that does nothing takes \d+ ms\.", done.stdout)


def test_what_it_shows_does_not_count_as_seen(machine: Machine) -> None:
    machine.install()
    assert not (machine.claude / ".session-memory").exists()
    project_dir = machine.claude / "projects" / "-srv-shop"
    assert "ship it" in machine.prompt(project_dir, "11111111-1111-4111-8111-111111111111")
    assert machine.prompt(project_dir, "11111111-1111-4111-8111-111111111111") == ""


def test_a_second_run_changes_no_byte_and_no_time(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    before = {path: path.lstat().st_mtime_ns for path in machine.home.rglob("*") if not path.is_dir()}
    result = machine.installed()
    assert {path: path.lstat().st_mtime_ns for path in machine.home.rglob("*") if not path.is_dir()} == before
    assert (result["program_changed"], result["homes"][0]["settings"]["change"]) == (False, "unchanged")


@pytest.mark.parametrize(
    "settings",
    [None, "{}", MINE, '{"a":1}', '{\r\n\t"hooks": {}\r\n}\r\n'],
    ids=["none", "empty", "own hooks", "minified", "CRLF"],
)
def test_uninstalling_leaves_the_home_directory_as_it_was(machine: Machine, settings: str | None) -> None:
    if settings is not None:
        machine.settings.write_text(settings, newline="")
        machine.settings.chmod(0o640)
    shutil.rmtree(machine.program_dir)
    (machine.home / ".local" / "share").rmdir()
    before = tree(machine.home)
    machine.has_environment()
    machine.install()
    assert "user_prompt_submit.py" in machine.settings.read_text()
    assert settings is None or machine.settings.stat().st_mode & 0o777 == 0o640
    done = machine.install("--uninstall")
    assert (done.returncode, done.stderr) == (0, "")
    after = tree(machine.home)
    for made_by_the_fixture in (".local/share", ".local"):
        after.pop(made_by_the_fixture, None)
        before.pop(made_by_the_fixture, None)
    assert after == before


def test_paths_with_spaces_and_quotes_work_throughout(tmp_path: Path) -> None:
    source = tmp_path / 'a "clone" of it\'s'
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "tests"))
    machine = Machine(tmp_path / 'it\'s a "home" $HOME', source).has_environment()
    machine.has_claude_code()
    agent_home(machine.home / "my agent")
    before = tree(machine.home / "my agent")
    result = machine.installed("--home", str(machine.home / "my agent"), "--home", str(machine.claude))
    assert ["[Session Activity]" in text for text in told(result)] == [True, True]
    skill = (machine.home / "my agent/.claude/skills/sessions/SKILL.md").read_text()
    command = next(line.strip() for line in skill.splitlines() if line.endswith("--list"))
    assert (
        "discord" in machine.run("/bin/sh", "-c", command, CLAUDE_CONFIG_DIR=f"{machine.home}/my agent/.claude").stdout
    )
    assert machine.install("--uninstall").returncode == 0
    assert tree(machine.home / "my agent") == before


def test_a_settings_file_that_the_user_changed_since_loses_only_our_entries(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    machine.settings.write_text(machine.settings.read_text().replace('"opus"', '"sonnet"'))
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE.replace('"opus"', '"sonnet"')


def test_an_upgrade_does_not_forget_the_original_bytes(machine: Machine, tmp_path: Path) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    newer = tmp_path / "newer"
    shutil.copytree(REPOSITORY, newer, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "tests"))
    declared = newer / "hooks" / "hooks.json"
    declared.write_text(declared.read_text().replace('"timeout": 5', '"timeout": 7'))
    machine.source = newer
    result = machine.installed()
    assert (result["program_changed"], result["homes"][0]["settings"]["change"]) == (True, "changed")
    assert '"timeout": 5' not in machine.settings.read_text()
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE


def test_settings_that_are_a_link_stay_one(machine: Machine) -> None:
    dotfiles = machine.home / "dotfiles.json"
    dotfiles.write_text(MINE)
    machine.settings.symlink_to(dotfiles)
    machine.install()
    assert machine.settings.is_symlink()
    assert "user_prompt_submit.py" in dotfiles.read_text()
    machine.install("--uninstall")
    assert (machine.settings.is_symlink(), dotfiles.read_text()) == (True, MINE)


def test_a_dry_run_shows_the_change_and_makes_none(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    before = tree(machine.home)
    done = machine.install("--dry-run")
    assert tree(machine.home) == before
    added = [line[1:] for line in done.stdout.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert any('"command": ' in line and "/app/hooks/user_prompt_submit.py" in line for line in added)
    assert f"+++ {machine.settings}" in done.stdout
    assert "would add ~/.claude/skills/sessions/SKILL.md" in done.stdout


def test_what_a_dry_run_shows_is_what_is_done_then(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    foreseen = machine.installed("--dry-run")["homes"][0]
    done = machine.installed()["homes"][0]
    assert (foreseen["settings"], foreseen["skills"]) == (done["settings"], done["skills"])


def test_a_dry_run_of_uninstalling_makes_no_change_either(machine: Machine) -> None:
    machine.install()
    before = tree(machine.home)
    assert "user_prompt_submit.py" in machine.install("--uninstall", "--dry-run").stdout
    assert tree(machine.home) == before


def test_one_settings_file_that_cannot_be_parsed_keeps_every_home_untouched(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude" / "settings.json").write_text('{\n  "a": 1,\n}\n')
    before = tree(machine.home)
    done = machine.install("--home", str(machine.claude), "--home", str(agent))
    assert done.returncode == 1
    assert f"{agent}/.claude/settings.json:2:9: a comma stands before }}" in done.stderr
    assert "Traceback" not in done.stderr
    assert tree(machine.home) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_cannot_be_written_keeps_every_home_untouched(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude").chmod(0o500)
    before = tree(machine.home)
    done = machine.install("--home", str(machine.claude), "--home", str(agent))
    assert (done.returncode, tree(machine.home)) == (1, before)
    assert "cannot be written to" in done.stderr


def test_a_directory_that_is_no_home_is_refused_with_what_would_be_one(machine: Machine) -> None:
    (machine.home / "work").mkdir()
    before = tree(machine.home)
    done = machine.install("--home", str(machine.home / "work"))
    assert (done.returncode, tree(machine.home)) == (1, before)
    assert "it is no agent home and no configuration directory of Claude Code" in done.stderr
    assert ".session-memory/sessions/" in done.stderr


@pytest.mark.parametrize(
    ("memory_dir", "workdir"), [(".session-memory", ""), (".volute", ""), (".mind", ""), (".volute", "home")]
)
def test_an_agent_home_is_told_of_its_named_sessions(bare_machine: Machine, memory_dir: str, workdir: str) -> None:
    bare_machine.has_environment()
    root = agent_home(bare_machine.home / "agent", memory_dir=memory_dir, workdir=workdir)
    transcripts = bare_machine.claude / "projects" / re.sub("[^A-Za-z0-9]", "-", str(root / workdir).rstrip("/"))
    transcripts.parent.mkdir(parents=True)
    shutil.copytree(next(root.rglob("-srv-agent")), transcripts)
    shutil.rmtree(next(root.rglob("projects")))
    result = bare_machine.installed("--home", str(root))
    assert '- discord (1m ago, 2 messages): "is it up?"' in told(result)[0]
    assert "user_prompt_submit.py" in (root / workdir / ".claude" / "settings.json").read_text()
    assert f"--home {root}" in (root / workdir / ".claude" / "skills" / "sessions" / "SKILL.md").read_text()


def test_the_agent_home_that_one_is_in_is_found(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / "notes").mkdir()
    result = machine.installed(cwd=agent / "notes")
    assert [(home["kind"], home["path"]) for home in result["homes"]] == [
        ("claude", str(machine.claude)),
        ("agent", str(agent)),
    ]


def test_a_home_that_was_installed_into_once_is_kept_up_to_date(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.install("--home", str(agent))
    assert [home["path"] for home in machine.installed()["homes"]] == [str(machine.claude), str(agent)]


def test_a_project_of_its_own_gets_its_settings_and_looks_at_its_transcripts(machine: Machine) -> None:
    project = machine.home / "shop"
    (project / ".claude").mkdir(parents=True)
    machine.has_claude_code(str(project))
    result = machine.installed("--home", str(project))
    assert (result["homes"][0]["kind"], "ship it" in told(result)[0]) == ("project", True)
    assert (project / ".claude" / "settings.json").is_file()
    assert not machine.settings.exists()


def test_claude_config_dir_is_where_claude_code_lives(machine: Machine) -> None:
    machine.claude.rename(machine.home / "elsewhere")
    done = machine.install("--json", CLAUDE_CONFIG_DIR=f"{machine.home}/elsewhere")
    assert json.loads(done.stdout)["homes"][0]["path"] == f"{machine.home}/elsewhere"
    assert (machine.home / "elsewhere" / "settings.json").is_file()
    assert not machine.claude.exists()


def test_sessions_that_did_nothing_lately_are_told_of_in_one_line(machine: Machine) -> None:
    for path in machine.claude.rglob("*.jsonl"):
        os.utime(path, (1e9, 1e9))
    assert "nothing happened lately in the other sessions." in machine.install().stdout


def test_a_machine_without_any_home_is_shown_a_sample_of_one(bare_machine: Machine) -> None:
    bare_machine.has_environment()
    done = bare_machine.install()
    assert (done.returncode, done.stderr) == (0, "")
    assert '- discord (3m ago, 7 messages): "mira: how do I deploy this to staging?"' in done.stdout
    assert "- email (20m ago, 4 messages):" in done.stdout
    assert not bare_machine.claude.exists()
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_sample_is_as_fresh_the_second_time_and_goes_with_the_rest(bare_machine: Machine) -> None:
    bare_machine.has_environment()
    first = bare_machine.installed()
    second = bare_machine.installed()
    assert told(first) == told(second)
    assert second["homes"][0]["settings"]["change"] == "unchanged"
    bare_machine.install("--uninstall")
    assert not bare_machine.program_dir.exists()


def test_a_sample_makes_room_for_the_first_real_home(bare_machine: Machine) -> None:
    bare_machine.has_environment()
    bare_machine.install()
    bare_machine.has_claude_code()
    assert [home["path"] for home in bare_machine.installed()["homes"]] == [str(bare_machine.claude)]


def test_without_a_package_index_all_that_needs_none_is_installed(bare_machine: Machine) -> None:
    bare_machine.has_claude_code()
    done = bare_machine.install()
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert (
        "Not installed: filelock, orjson, pyyaml, apsw, claude-agent-sdk, croniter, rich, watchfiles (no package"
        in said
    )
    assert "To add it where a package index can be reached: python3" in said
    assert '"ship it"; last: "Shipped."' in done.stdout
    assert bare_machine.hook_command().startswith(f"{bare_machine.program_dir}/env/bin/python -I -S ")


def test_a_python_without_ensurepip_makes_do_with_its_own_pip(
    bare_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    refusal = 'case "$*" in *--without-pip*) ;; *"-m venv"*) echo "ensurepip is not available"; exit 1;; esac'
    python.write_text(f'#!/bin/sh\n{refusal}\nexec {PYTHON} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(environment, "base_python", lambda: str(python))
    for name, value in bare_machine.environ.items():
        monkeypatch.setenv(name, value)
    bare_machine.program_dir.mkdir(parents=True)
    places = Places(bare_machine.program_dir, bare_machine.home / ".local" / "bin")
    made = environment.ensure(places, REPOSITORY / "requirements.lock", Screen(bare_machine.environ))
    assert (made.state, made.python) == ("made", str(places.python))
    assert set(made.problems.values()) == {environment.NO_INDEX}


def test_where_no_environment_can_be_made_the_hooks_run_with_the_real_interpreter(
    bare_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_make_venv", lambda directory: "no module named venv")
    bare_machine.program_dir.mkdir(parents=True)
    places = Places(bare_machine.program_dir, bare_machine.home / ".local" / "bin")
    made = environment.ensure(places, REPOSITORY / "requirements.lock", Screen(bare_machine.environ))
    assert (made.state, made.python) == ("missing", PYTHON)
    assert made.problems["basic"] == "no module named venv"


@pytest.mark.slow
def test_the_environment_holds_the_pinned_versions_and_nothing_else(bare_machine: Machine) -> None:
    bare_machine.has_claude_code()
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environ = {**{name: bare_machine.environ[name] for name in ("HOME", "PATH", "LANG")}, **index}
    command = [PYTHON, str(REPOSITORY / "install.py"), "--json"]
    done = subprocess.run(command, env=environ, cwd=bare_machine.home, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    if environment.NO_INDEX in result["environment"]["problems"].values():
        pytest.skip("no package index can be reached from here")
    assert result["environment"]["missing"] == []
    freeze = [result["environment"]["python"], "-m", "pip", "freeze"]
    frozen = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.split()
    assert {_canonical(pin) for pin in frozen} <= set(_pins())
    subprocess.run([result["environment"]["python"], "-m", "pip", "check"], check=True, capture_output=True)
    assert not (bare_machine.home / ".cache").exists()
    config = bare_machine.claude / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    config.write_text(yaml.safe_dump({"sessions": {"ship it": {"ignore": True}}}))
    assert "ship it" not in told(bare_machine.installed())[0]


def test_the_installed_command_takes_in_what_there_is_and_finds_it(bare_machine: Machine) -> None:
    apsw = pytest.importorskip("apsw")
    bare_machine.has_environment().has_claude_code()
    bare_machine.installed()
    [packages] = (bare_machine.program_dir / "env" / "lib").glob("python*/site-packages")
    (packages / "apsw").symlink_to(Path(apsw.__file__).parent)
    command = str(bare_machine.program_dir / "bin" / "session-memory")
    found = bare_machine.run(command, "search", "cart")
    assert found.returncode == 0, found.stderr
    assert "A **cart**" in found.stdout or "the **cart** empty" in found.stdout


def test_the_lock_pins_exactly_one_version_of_all_that_is_asked_for() -> None:
    names = [pin.partition("==")[0] for pin in _pins()]
    assert len(set(names)) == len(names)
    wanted = re.search(
        r"^dependencies = (\[.*?\])", (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    assert wanted
    asked = {re.split("[<>=~]", name)[0] for name in ast.literal_eval(wanted.group(1))}
    assert asked == set(environment.names_of(environment.GROUPS))
    assert asked <= set(names)


def _pins() -> list[str]:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    return [_canonical(line.partition(" ;")[0]) for line in lines if line and not line.startswith("#")]


def _canonical(pin: str) -> str:
    name, equal, version = pin.partition("==")
    assert equal, pin
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


def test_a_skill_directory_of_somebody_elses_is_left_alone(machine: Machine) -> None:
    theirs = machine.claude / "skills" / "sessions" / "SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    result = machine.installed()
    assert theirs.read_text() == "mine"
    assert "is not ours and was left alone" in result["homes"][0]["notes"][0]
    assert machine.hook_command()
    machine.install("--uninstall")
    assert theirs.read_text() == "mine"


def test_a_skill_that_was_edited_is_kept_aside(machine: Machine) -> None:
    machine.install()
    skill = machine.claude / "skills" / "sessions" / "SKILL.md"
    ours = skill.read_text()
    skill.write_text("edited")
    result = machine.installed()
    assert (skill.read_text(), skill.with_name("SKILL.md.bak").read_text()) == (ours, "edited")
    assert "your version is kept as SKILL.md.bak" in result["homes"][0]["notes"][0]
    skill.write_text("edited again")
    machine.install("--uninstall")
    left = {path.name: path.read_text() for path in skill.parent.iterdir()}
    assert left == {"SKILL.md.bak": "edited", "SKILL.md.bak1": "edited again"}


def test_a_skill_that_is_no_more_goes_with_the_next_install(machine: Machine, tmp_path: Path) -> None:
    machine.source = tmp_path / "older"
    shutil.copytree(REPOSITORY, machine.source, ignore=shutil.ignore_patterns(".git", "__pycache__", "tests"))
    (machine.source / "skills" / "retired").mkdir()
    (machine.source / "skills" / "retired" / "SKILL.md").write_text("of an earlier version")
    machine.install()
    assert (machine.claude / "skills" / "retired" / "SKILL.md").is_file()
    machine.source = REPOSITORY
    machine.install()
    assert not (machine.claude / "skills" / "retired").exists()


def test_a_command_of_that_name_which_is_not_ours_is_left_alone(machine: Machine) -> None:
    theirs = machine.home / ".local" / "bin" / "session-memory"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    result = machine.installed()
    assert theirs.read_text() == "theirs"
    assert "is something else and was left alone" in result["notes"][0]
    machine.install("--uninstall")
    assert theirs.read_text() == "theirs"


def test_a_bin_directory_that_is_not_on_the_path_is_told_of(machine: Machine) -> None:
    done = machine.install(PATH="/usr/bin:/bin")
    assert "~/.local/bin is not on your PATH" in done.stdout
    assert "~/.local/bin/session-memory doctor" in done.stdout


def test_hooks_that_are_switched_off_stay_off_and_that_is_told(machine: Machine) -> None:
    machine.settings.write_text('{"disableAllHooks": true}')
    assert "disableAllHooks is true" in machine.install().stdout
    assert json.loads(machine.settings.read_text())["disableAllHooks"] is True


def test_a_hook_whose_program_is_gone_lets_the_prompt_through(machine: Machine) -> None:
    machine.install()
    command = machine.hook_command()
    shutil.rmtree(machine.program_dir / "app", ignore_errors=True)
    (machine.program_dir / "app").unlink()
    done = machine.run("/bin/sh", "-c", command)
    assert (done.returncode, done.stdout) == (1, "")  # 2 would drop the prompt


def test_entries_of_a_copy_elsewhere_are_replaced_and_a_users_own_hook_of_that_name_is_not(machine: Machine) -> None:
    copy = f"python3 -I -S {REPOSITORY}/hooks/user_prompt_submit.py"
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
    (machine.program_dir / "installed.json").unlink()
    assert machine.installed()["homes"][0]["settings"]["change"] == "unchanged"
    assert machine.install("--uninstall").returncode == 0
    assert machine.settings.read_text() == MINE
    assert not (machine.claude / "skills" / "sessions").exists()


def test_uninstalling_without_a_ledger_finds_our_entries(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    (machine.program_dir / "installed.json").unlink()
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE
    assert not machine.program_dir.exists()


def test_a_ledger_that_cannot_be_read_is_told_of(machine: Machine) -> None:
    machine.install()
    (machine.program_dir / "installed.json").write_text("{")
    done = machine.install()
    assert done.returncode == 1
    assert "installed.json: it cannot be read" in done.stderr
    assert "move it away and run install.py again" in done.stderr


@pytest.mark.parametrize("breaks_at", range(3))
def test_an_install_that_broke_off_can_be_taken_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, breaks_at: int
) -> None:
    machine.settings.write_text(MINE)
    shutil.rmtree(machine.home / ".local" / "bin", ignore_errors=True)
    before = {name: value for name, value in tree(machine.home).items() if not name.startswith(".local/share/s")}
    _install_until(breaks_at, machine, monkeypatch)
    assert machine.install("--uninstall").returncode == 0
    assert tree(machine.home) == before


@pytest.mark.parametrize("breaks_at", range(3))
def test_an_install_that_broke_off_can_be_finished(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, breaks_at: int
) -> None:
    machine.settings.write_text(MINE)
    _install_until(breaks_at, machine, monkeypatch)
    assert machine.installed()["homes"][0]["notes"] == []
    machine.hook_command()
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE


def _install_until(breaks_at: int, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs as far as the given number of changed files."""
    made = iter(range(breaks_at))
    real = FileChange.make

    def make(change: FileChange) -> None:
        if change.is_one and next(made, None) is None:
            raise CannotWriteError("the disk is full")
        real(change)

    monkeypatch.setattr(home_changes.FileChange, "make", make)
    places = Places(machine.program_dir, machine.home / ".local" / "bin")
    with pytest.raises(CannotWriteError):
        install([str(machine.claude)], places, machine.environ, Screen(machine.environ), dry_run=False)


def test_a_settings_file_that_changes_under_our_hands_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    change = FileChange(path, b"{}", b'{"hooks": {}}')
    path.write_text('{"model": "opus"}')
    with pytest.raises(SessionMemoryError, match="somebody else changed it just now"):
        change.make()
    assert path.read_text() == '{"model": "opus"}'


def test_only_one_install_is_at_work_at_a_time(machine: Machine) -> None:
    places = Places(machine.program_dir, machine.home / ".local" / "bin")
    with locked(places):
        done = machine.install()
    assert done.returncode == 1
    assert "another install is at work" in done.stderr
    assert not machine.settings.exists()


def test_an_update_has_no_moment_without_the_program(tmp_path: Path) -> None:
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
        remove_others(at)
        built = tmp_path / f"app-{turn}"
        built.mkdir()
        (built / "hook.py").write_text(str(turn))
        put_in_place(built, at)
        if turn == 0:
            reader = threading.Thread(target=look)
            reader.start()
    is_over.set()
    reader.join()
    assert missed == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app", "app-198", "app-199"]


def test_the_installed_program_is_compiled_for_the_interpreter_of_the_hooks(machine: Machine) -> None:
    machine.install()
    app = machine.program_dir / "app"
    tag = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    assert (app / "session_memory" / "__pycache__" / f"hook.{tag}.pyc").is_file()
    assert (app / "session_memory" / "runtimes" / "__pycache__" / f"claude.{tag}.pyc").is_file()


def test_homes_can_be_added_and_left_with_the_installed_command_alone(machine: Machine, tmp_path: Path) -> None:
    machine.source = tmp_path / "clone"
    shutil.copytree(REPOSITORY, machine.source, ignore=shutil.ignore_patterns(".git", "__pycache__", "tests"))
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


def test_leaving_a_home_that_was_never_entered_is_refused(machine: Machine) -> None:
    machine.install()
    done = machine.install("--uninstall", "--home", str(agent_home(machine.home / "agent")))
    assert (done.returncode, "nothing was installed there" in done.stderr) == (1, True)


@pytest.mark.parametrize("purge", [False, True])
def test_what_the_user_and_the_hook_keep_stays_unless_it_is_purged(machine: Machine, purge: bool) -> None:
    agent = agent_home(machine.home / "agent")
    machine.install("--home", str(agent))
    memory = agent / ".session-memory"
    (memory / "config.yaml").write_text("scope: all\n")
    (memory / "state").mkdir()
    done = machine.install("--uninstall", *(["--purge"] if purge else []))
    assert ("~/agent/.session-memory/config.yaml (--purge deletes it too)" in done.stdout) is not purge
    assert sorted(path.name for path in memory.iterdir()) == (
        ["sessions"] if purge else ["config.yaml", "sessions", "state"]
    )


def test_the_json_result_is_all_there_is_on_standard_output(machine: Machine) -> None:
    done = machine.install("--json")
    result = json.loads(done.stdout)
    home = result["homes"][0]
    assert (home["kind"], home["settings"]["change"], home["hooks_disabled"]) == ("claude", "added", False)
    assert result["environment"]["state"] == "ready"
    assert home["trial"]["hook_seconds"] > 0
    uninstalled = json.loads(machine.install("--uninstall", "--json").stdout)
    assert (uninstalled["program_removed"], uninstalled["homes"][0]["restored"]) == (True, True)


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_colours_show_on_a_terminal_unless_they_are_not_wanted(
    machine: Machine, no_color: str, is_coloured: bool
) -> None:
    controller, terminal = pty.openpty()
    environ = {**machine.environ, "TERM": "xterm", "NO_COLOR": no_color}
    command = [PYTHON, str(REPOSITORY / "install.py"), "--dry-run"]
    process = subprocess.Popen(command, env=environ, cwd=machine.home, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    try:
        while block := os.read(controller, 65536):
            shown += block
    except OSError:  # how Linux tells that the other side is closed
        pass
    os.close(controller)
    assert process.wait() == 0
    assert (b"\x1b[1msession-memory" in shown) is is_coloured
    assert "\x1b" not in machine.install("--dry-run").stdout


def test_a_python_that_is_too_old_is_told_so() -> None:
    source = (REPOSITORY / "install.py").read_text()
    ast.parse(source, feature_version=(3, 6))
    old = f"import sys; sys.version_info = (3, 9, 2); sys.argv = ['install.py']; exec({source!r}, {{'__name__': '__main__'}})"
    done = subprocess.run([PYTHON, "-c", old], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "session-memory needs Python 3.10 or newer; this is 3.9.2" in done.stderr


def test_the_ledger_keeps_the_settings_to_this_user(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    path = machine.program_dir / "installed.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_ledger(path).homes[str(machine.claude)].original == MINE


def test_a_copy_of_the_repository_that_is_not_whole_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.source = tmp_path / "part"
    for name in ("session_memory", "install.py"):
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copyfile
        machine.source.mkdir(exist_ok=True)
        copy(REPOSITORY / name, machine.source / name)
    done = machine.install()
    assert (done.returncode, "hooks/hooks.json is not there" in done.stderr) == (1, True)


def test_transcripts_that_lie_elsewhere_are_found_by_their_ids(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    shutil.copytree(agent / ".claude" / "projects" / "-srv-agent", machine.claude / "projects" / "-somewhere-else")
    shutil.rmtree(agent / ".claude" / "projects")
    assert "is it up?" in told(machine.installed("--home", str(agent)))[0]


def test_projects_of_an_agent_home_are_not_what_claude_code_is_shown_with(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    path = machine.claude / "projects" / "-agent" / f"{builders.new_id()}.jsonl"
    builders.write(path, *builders.exchange("agent business", "Done.", cwd=str(agent)))
    result = machine.installed()
    assert result["homes"][0]["trial"]["session"] == "a new session in /srv/shop"
