"""install.py on a separate machine: its additions, the files it leaves alone, and undoing all of it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import records
from git_scene import git, repository
from install_machine import (
    MINE,
    PYTHON,
    REPOSITORY,
    Machine,
    agent_home,
    compiled_copy_of_repository,
    copy_repository,
    told,
    tree,
    used_machine,
)

from bench.scratch import remove_tree
from session_memory.awareness.install.ledger import InstallLedger
from session_memory.common.system.terminal import byte_size
from session_memory.history.archives.estimate import SHARE


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


def test_a_first_install_shows_an_update_of_ones_own_sessions_one_next_step_and_then_permissions(
    machine: Machine,
) -> None:
    done = machine.install(examples=True)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.replace("  |", "").split())
    in_order = [
        "with your next prompt, each of your agents learns what your other sessions did.",
        "Installed:",
        'The next prompt of "why is the cart empty?" (Claude Code) would have got:',
        '- "ship it" (1m ago, 2 messages): last: "Shipped."',
        "Next Start a new session of your agent.",
        "session-memory install --allow",
    ]
    assert "For example" not in said, "there are sessions of one's own"
    assert "off: session-memory config upkeep off" in said
    places = [said.find(part) for part in in_order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_example_of_ones_own_is_the_last_with_a_collision(machine: Machine) -> None:
    shop = f"{machine.home}/shop"
    cart = f"{shop}/cart.ts"
    os.mkdir(shop)
    Path(cart).touch()
    for minutes, *said in (
        (300, records.user("read it"), records.assistant(("Read", {"file_path": cart}))),
        (290, records.user("change it"), records.assistant(("Edit", {"file_path": cart}))),
    ):
        then = time.time() - minutes * 60
        path = (
            machine.claude
            / "projects"
            / re.sub("[^A-Za-z0-9]", "-", shop)
            / f"{records.new_id()}.jsonl"
        )
        for one in said:
            one["timestamp"], one["cwd"] = records.stamp(then), shop
        records.write(path, *said)
        os.utime(path, (then, then))
    said = machine.install(examples=True).stdout
    assert "would have got" in said
    assert (
        '! cart.ts: edited just now by "change it", after you read it'
        in said.partition("would have got")[2]
    )
    assert "ship it" not in said
    assert "For example" not in machine.install(examples=True).stdout, "an update shows none again"


def test_the_example_of_ones_own_is_no_update_of_an_agent_that_gets_none(machine: Machine) -> None:
    shop, then = machine.home / "shop", time.time() - 20 * 60
    shop.mkdir()
    (shop / "cart").touch()
    calls = [{"tool_call_id": "1", "function_name": "read_file", "arguments": {"path": "cart"}}]
    results = [{"source_call_id": "1", "content": "ok"}]
    read = {"source": "agent", "timestamp": records.stamp(then), "message": ""}
    steps = [
        *records.atif_exchange("Tidy the cart", "Done.", at=then),
        {**read, "tool_calls": calls, "observation": {"results": results}},
    ]
    agent = {"name": "own", "version": "1", "extra": {"cwd": str(shop)}}
    document = {"schema_version": "ATIF-v1.7", "session_id": "one", "agent": agent, "steps": steps}
    path = machine.home / ".atif/one/trajectory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    os.utime(path, (then, then))
    worked(machine, shop, 10, "Test the cart", ("Edit", {"file_path": str(shop / "cart")}))
    said = " ".join(machine.install(examples=True).stdout.split())
    assert "(Claude Code) would have got:" in said
    assert "Test the cart" not in said


@pytest.mark.parametrize("has_collision", [False, True])
def test_the_example_is_a_conflict_that_waits_unless_there_was_a_collision(
    machine: Machine, has_collision: bool
) -> None:
    shop, fix = machine.home / "shop", machine.home / "shop-fix"
    cart = "".join(f"line {number}\n" for number in range(1, 41))
    repository(shop, cart=cart)
    git(shop, "worktree", "add", "-q", "-b", "fix/login", str(fix))
    for minutes, root, words, request in (
        (9, shop, "ours", "Mend the tax"),
        (4, fix, "theirs", "Choose a time"),
    ):
        (root / "cart").write_text(cart.replace("line 20\n", f"{words}\n"))
        worked(machine, root, minutes, request, ("Edit", {"file_path": str(root / "cart")}))
    if has_collision:
        worked(machine, shop, 300, "read it", ("Read", {"file_path": str(shop / "cart")}))
        worked(machine, shop, 290, "change it", ("Edit", {"file_path": str(shop / "cart")}))
    said = " ".join(machine.install(examples=True).stdout.replace("  |", "").split())
    waiting = "Two of your branches would conflict if you merged them now. The next prompt of"
    assert (waiting in said) != has_collision
    assert ("would have got" in said) == has_collision
    if not has_collision:
        assert "! cart: your line 20" in said.partition(waiting)[2]
        assert "your line 20 conflicts with" in said
        assert "ship it" not in said


def worked(
    machine: Machine, root: Path, minutes: float, request: str, tool: tuple[str, dict[str, str]]
) -> None:
    """Write a session of Claude Code in a directory, so many minutes ago."""
    then = time.time() - minutes * 60
    path = (
        machine.claude
        / "projects"
        / re.sub("[^A-Za-z0-9]", "-", str(root))
        / f"{records.new_id()}.jsonl"
    )
    records.write(path, *records.exchange(request, tool, at=then, cwd=str(root)))
    os.utime(path, (then, then))


def test_what_it_shows_does_not_count_as_seen(machine: Machine) -> None:
    machine.install()
    assert not (machine.home / ".session-memory").exists()
    project_dir = machine.claude / "projects" / "-srv-shop"
    assert "ship it" in machine.prompt(project_dir, "11111111-1111-4111-8111-111111111111")


def test_a_second_run_changes_no_byte_and_no_time(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    before = {
        path: path.lstat().st_mtime_ns for path in machine.home.rglob("*") if not path.is_dir()
    }
    result = machine.installed()
    assert {
        path: path.lstat().st_mtime_ns for path in machine.home.rglob("*") if not path.is_dir()
    } == before
    assert (result["program_changed"], result["homes"][0]["settings"]["change"]) == (
        False,
        "unchanged",
    )


@pytest.mark.parametrize(
    "settings",
    [None, "{}", MINE, '{"a":1}', '{\r\n\t"hooks": {}\r\n}\r\n'],
    ids=["none", "empty", "own hooks", "minified", "CRLF"],
)
@pytest.mark.sample(2)
def test_uninstalling_leaves_the_home_directory_as_it_was(
    machine: Machine, settings: str | None
) -> None:
    if settings is not None:
        machine.settings.write_text(settings, newline="")
        machine.settings.chmod(0o640)
    remove_tree(machine.program_dir)
    (machine.home / ".local" / "share").rmdir()
    before = tree(machine.home)
    machine.has_environment().has_program()
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
    compiled_copy_of_repository(source)
    machine = Machine(tmp_path / 'it\'s a "home" $HOME', source).has_environment()
    machine.has_claude_code()
    agent_home(machine.home / "my agent")
    before = tree(machine.home / "my agent")
    result = machine.installed(
        "--home", str(machine.home / "my agent"), "--home", str(machine.claude)
    )
    assert ["[Session Activity]" in text for text in told(result)] == [True, True]
    skill = (machine.home / "my agent/.claude/skills/sessions/SKILL.md").read_text()
    command = next(
        line.strip()
        for line in skill.splitlines()
        if line.startswith("    ") and line.endswith(" sessions")
    )
    agent = machine.home / "my agent"
    done = machine.run("/bin/sh", "-c", command, cwd=agent, CLAUDE_CONFIG_DIR=f"{agent}/.claude")
    assert "discord" in done.stdout
    assert machine.install("--uninstall").returncode == 0
    assert tree(machine.home / "my agent") == before


def test_a_settings_file_that_the_user_changed_since_loses_only_our_entries(
    machine: Machine,
) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    machine.settings.write_text(machine.settings.read_text().replace('"opus"', '"sonnet"'))
    machine.install("--uninstall")
    assert machine.settings.read_text() == MINE.replace('"opus"', '"sonnet"')


def test_an_upgrade_does_not_forget_the_original_bytes(machine: Machine, tmp_path: Path) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    newer = compiled_copy_of_repository(tmp_path / "newer")
    declared = newer / "hooks" / "hooks.json"
    declared.write_text(declared.read_text().replace('"timeout": 5', '"timeout": 7'))
    machine.source = newer
    result = machine.installed()
    assert (result["program_changed"], result["homes"][0]["settings"]["change"]) == (
        True,
        "changed",
    )
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
    added = [
        line[1:]
        for line in done.stdout.splitlines()
        if line.startswith("+") and not line.startswith("+++")
    ]
    assert any(
        '"command": ' in line and "/app/hooks/user_prompt_submit.py" in line for line in added
    )
    assert f"+++ {machine.settings}" in done.stdout
    assert "would add ~/.claude/skills/sessions/SKILL.md" in done.stdout
    foreseen, done = (machine.installed(*options)["homes"][0] for options in (["--dry-run"], []))
    assert (foreseen["settings"], foreseen["skills"]) == (done["settings"], done["skills"])


def test_a_dry_run_of_uninstalling_makes_no_change_either(machine: Machine) -> None:
    machine.install()
    before = tree(machine.home)
    assert "user_prompt_submit.py" in machine.install("--uninstall", "--dry-run").stdout
    assert tree(machine.home) == before


@pytest.mark.parametrize(
    ("memory_dir", "workdir"),
    [(".session-memory", ""), (".volute", ""), (".mind", ""), (".volute", "home")],
)
@pytest.mark.sample(2)
def test_an_agent_home_is_told_of_its_named_sessions(
    bare_machine: Machine, memory_dir: str, workdir: str
) -> None:
    bare_machine.has_environment().has_program()
    root = agent_home(bare_machine.home / "agent", memory_dir=memory_dir, workdir=workdir)
    transcripts = (
        bare_machine.claude
        / "projects"
        / re.sub("[^A-Za-z0-9]", "-", str(root / workdir).rstrip("/"))
    )
    transcripts.parent.mkdir(parents=True)
    shutil.copytree(next(root.rglob("-srv-agent")), transcripts)
    remove_tree(next(root.rglob("projects")))
    result = bare_machine.installed("--home", str(root))
    assert '- discord (1m ago, 2 messages): "is it up?"' in told(result)[0]
    assert "user_prompt_submit.py" in (root / workdir / ".claude" / "settings.json").read_text()
    named = "$CLAUDE_PROJECT_DIR/.." if workdir else "$CLAUDE_PROJECT_DIR"
    assert bare_machine.hook_command(root / workdir / ".claude/settings.json").endswith(
        f' --home "{named}" || exit 0'
    )
    assert str(root) not in (root / workdir / ".claude/skills/sessions/SKILL.md").read_text()


def test_the_registered_agent_home_that_one_is_in_is_found(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / "notes").mkdir()
    assert [home["kind"] for home in machine.installed(cwd=agent / "notes")["homes"]] == ["runtime"]
    (machine.home / ".session-memory").mkdir(exist_ok=True)
    (machine.home / ".session-memory/config.yaml").write_text("homes: [~/agent]\n")
    result = machine.installed(cwd=agent / "notes")
    assert [(home["kind"], home["path"]) for home in result["homes"]] == [
        ("runtime", str(machine.claude)),
        ("agent", str(agent)),
    ]


def test_a_home_that_was_installed_into_once_is_kept_up_to_date(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.install("--home", str(agent))
    assert [home["path"] for home in machine.installed()["homes"]] == [
        str(machine.claude),
        str(agent),
    ]


def test_a_project_of_its_own_gets_its_settings_and_looks_at_its_transcripts(
    machine: Machine,
) -> None:
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


def test_a_runtime_without_hooks_is_promised_no_updates_and_its_archives_are_counted(
    bare_machine: Machine,
) -> None:
    bare_machine.has_environment().has_program()
    steps = records.atif_exchange("one", "first " * 40_000)
    agent = {"name": "own", "version": "1", "extra": {"cwd": "/srv/app"}}
    document = {"schema_version": "ATIF-v1.7", "session_id": "one", "agent": agent, "steps": steps}
    path = bare_machine.home / ".atif/one/trajectory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    done = bare_machine.install("--home", str(bare_machine.home / ".atif"))
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "With each prompt it learns" not in said
    assert "ATIF runs no hooks of session-memory, so its agents get no updates." in said
    size = path.stat().st_size
    assert 240_000 < size < 1_000_000
    assert f"about {byte_size(round(size * SHARE))}" in said


def test_a_machine_without_any_home_is_shown_a_sample_of_one(bare_machine: Machine) -> None:
    bare_machine.has_environment().has_program()
    done = bare_machine.install(examples=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "For example: Codex edits a file" in done.stdout
    assert "would have got" not in done.stdout
    assert "No agent that runs hooks was used here yet" in done.stdout
    assert "archives" not in done.stdout, "there is nothing to archive yet"
    assert not bare_machine.claude.exists()
    commands = [
        line.strip()
        for line in done.stdout.splitlines()
        if line.startswith("    ") and "session-memory" in line
    ]
    assert any(
        re.fullmatch(r"\S*session-memory page --home ~/\S+/sample-home", command)
        for command in commands
    )
    prose = [line for line in done.stdout.splitlines() if line.strip() not in commands]
    assert max(map(len, prose)) <= 80
    sample = str(bare_machine.program_dir / "sample-home")
    sessions = bare_machine.run("session-memory", "sessions", "--home", sample).stdout.splitlines()[
        1:
    ]
    assert [line.split()[-1] for line in sessions] == ["discord", "email", "main"]


def test_a_sample_is_as_fresh_the_second_time_and_goes_with_the_rest_or_makes_room_for_a_home(
    bare_machine: Machine,
) -> None:
    bare_machine.has_environment().has_program()
    first, second = bare_machine.installed(), bare_machine.installed()
    assert told(first) == told(second)
    assert second["homes"][0]["settings"]["change"] == "unchanged"
    bare_machine.install("--uninstall")
    assert not bare_machine.program_dir.exists()
    bare_machine.has_environment().has_program().install()
    bare_machine.has_claude_code()
    assert [home["path"] for home in bare_machine.installed()["homes"]] == [
        str(bare_machine.claude)
    ]


def test_a_skill_directory_of_somebody_elses_is_left_alone(machine: Machine) -> None:
    theirs = machine.claude / "skills" / "sessions" / "SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    result = machine.installed()
    assert theirs.read_text() == "mine"
    assert "was not made by session-memory and was left alone" in result["homes"][0]["notes"][0]
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


def test_a_skill_that_is_no_more_goes_with_the_next_install(
    machine: Machine, tmp_path: Path
) -> None:
    machine.source, machine.keeps_program = copy_repository(tmp_path / "older"), True
    (machine.source / "skills" / "retired").mkdir()
    (machine.source / "skills" / "retired" / "SKILL.md").write_text("of an earlier version")
    machine.install()
    assert (machine.claude / "skills" / "retired" / "SKILL.md").is_file()
    machine.source = REPOSITORY
    machine.install()
    assert not (machine.claude / "skills" / "retired").exists()


@pytest.mark.slow
def test_skills_are_put_where_several_runtimes_look_when_that_is_asked(machine: Machine) -> None:
    agent_home(machine.home / "agent")
    homes = ["--home", str(machine.claude), "--home", str(machine.home / "agent")]
    machine.installed(*homes)
    assert not list(machine.home.rglob(".agents"))
    machine.installed("--agents-skills", *homes)
    for directory in (machine.home, machine.home / "agent"):
        assert tree(directory / ".agents/skills") == tree(directory / ".claude/skills")
        assert (directory / ".agents/skills/sessions/SKILL.md").is_file()
    (machine.home / ".agents/skills/sessions/SKILL.md").unlink()
    machine.installed()
    assert (machine.home / ".agents/skills/sessions/SKILL.md").is_file(), (
        "they stay once they were asked for"
    )
    assert machine.install("--uninstall").returncode == 0
    assert not list(machine.home.rglob(".agents"))


def test_the_json_result_is_all_there_is_on_standard_output(machine: Machine) -> None:
    done = machine.install("--json")
    result = json.loads(done.stdout)
    home = result["homes"][0]
    assert (home["kind"], home["settings"]["change"], home["hooks_disabled"]) == (
        "runtime",
        "added",
        False,
    )
    assert result["environment"]["state"] == "ready"
    assert "ship it" in home["trial"]["text"]
    uninstalled = json.loads(machine.install("--uninstall", "--json").stdout)
    assert (uninstalled["program_removed"], uninstalled["homes"][0]["restored"]) == (True, True)


@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_colours_show_on_a_terminal_unless_they_are_not_wanted(
    machine: Machine, no_color: str, is_coloured: bool
) -> None:
    controller, terminal = pty.openpty()
    environ = {**machine.environ, "TERM": "xterm", "NO_COLOR": no_color}
    command = [PYTHON, str(REPOSITORY / "install.py"), "--dry-run"]
    process = subprocess.Popen(
        command, env=environ, cwd=machine.home, stdout=terminal, stderr=terminal
    )
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


def test_the_ledger_keeps_the_settings_to_this_user(machine: Machine) -> None:
    machine.settings.write_text(MINE)
    machine.install()
    path = machine.program_dir / "installed.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert InstallLedger.read(path).records[str(machine.claude)].original == MINE


def test_hooks_that_are_switched_off_stay_off_and_that_is_told(machine: Machine) -> None:
    machine.settings.write_text('{"disableAllHooks": true}')
    assert "disableAllHooks is true" in machine.install().stdout
    assert json.loads(machine.settings.read_text())["disableAllHooks"] is True


def test_transcripts_that_lie_elsewhere_are_found_by_their_ids(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    shutil.copytree(
        agent / ".claude" / "projects" / "-srv-agent",
        machine.claude / "projects" / "-somewhere-else",
    )
    remove_tree(agent / ".claude" / "projects")
    assert "is it up?" in told(machine.installed("--home", str(agent)))[0]


def test_projects_of_an_agent_home_are_not_what_claude_code_is_shown_with(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    path = machine.claude / "projects" / "-agent" / f"{records.new_id()}.jsonl"
    records.write(path, *records.exchange("agent business", "Done.", cwd=str(agent)))
    (machine.home / ".session-memory").mkdir(exist_ok=True)
    (machine.home / ".session-memory/config.yaml").write_text("homes: [~/agent]\n")
    result = machine.installed()
    assert result["homes"][0]["trial"]["session"] == "a new session in /srv/shop"
