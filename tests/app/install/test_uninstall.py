"""Uninstalls: what they remove, what they leave and report, moved homes, and several at once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import records
from install_machine import MINE, PYTHON, REPOSITORY, Machine, agent_home, tree, used_machine
from own_process import run_here
from permissions import bind_permissions

from session_memory.app.install._kept_files import sort_out


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


def uninstalled(machine: Machine, *options: str) -> dict[str, Any]:
    done = machine.install("--uninstall", "--json", *options)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def with_past(machine: Machine) -> Path:
    """An agent home that has kept something, as the person has."""
    agent = agent_home(machine.home / "agent")
    for place in (agent / ".session-memory", machine.home / ".session-memory"):
        (place / "state").mkdir(parents=True)
        (place / "config.yaml").write_text("scope: all\n")
    for folder in (agent / "conversations", machine.home / ".session-memory/conversations"):
        folder.mkdir()
        (folder / "2026-02-21-travel.md").write_text(
            '# Travel\n\n<!-- session-memory {"session": "x"} -->\n'
        )
    machine.installed("--home", str(agent), "--home", str(machine.claude))
    return agent


def test_an_uninstall_names_what_it_leaves(machine: Machine) -> None:
    agent = with_past(machine)
    planned, done = machine.install("--uninstall", "--dry-run"), machine.install("--uninstall")
    for path in (
        "~/agent/.session-memory/config.yaml",
        "~/agent/conversations",
        "~/.session-memory",
    ):
        assert f"{path} (--purge deletes it too, after asking)" in " ".join(planned.stdout.split())
        assert f"{path} (yours to delete)" in " ".join(done.stdout.split())  # the command is gone
    assert (agent / "conversations").is_dir()
    assert (machine.home / ".session-memory/conversations").is_dir()


def test_a_purge_takes_all_that_is_kept_but_the_named_sessions(machine: Machine) -> None:
    agent = with_past(machine)
    for private in (".private-conversations", ".private-memories"):
        (agent / private).mkdir()
    done = machine.install("--uninstall", "--purge", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in (agent / ".session-memory").iterdir()] == ["sessions"]
    assert [
        path.name
        for path in agent.iterdir()
        if "conversations" in path.name or "memories" in path.name
    ] == []
    assert not (machine.home / ".session-memory").exists()


def test_a_purge_takes_what_the_commands_wrote(machine: Machine) -> None:
    folder, place = machine.has_claude_code(), machine.home / ".session-memory"
    edit = (
        "Edit",
        {
            "file_path": "/srv/shop/cart.py",
            "old_string": "",
            "new_string": "total = price * (1 + tax)",
        },
    )
    records.write(
        folder / f"{records.new_id()}.jsonl",
        *records.exchange("add tax", "Yes."),
        records.assistant(edit),
    )
    machine.installed()
    for words in (
        "config keep whole",
        "ingest",
        "process",
        "archive --all",
        "remember luxon",
        "search tax",
        "deliveries",
    ):
        done = run_here(words.split(), machine.environ, machine.home)
        assert done.returncode == 0, done.stderr
    assert (place / "lines.key").exists()
    done = machine.install("--uninstall", "--purge", "--yes")
    assert (done.returncode, place.exists()) == (0, False), done.stdout


def test_every_file_that_the_package_puts_into_its_state_is_ours(tmp_path: Path) -> None:
    texts = [path.read_text() for path in (REPOSITORY / "session_memory").rglob("*.py")]
    form = r"""(?:state_dir(?:\}| \+ ")|^_?[A-Z_]+ = ")/([a-z_-]+\.(?:json|lock|log))\""""
    names = {name for text in texts for name in re.findall(form, text, re.MULTILINE)}
    assert {"upkeep.lock", "conflicts.json", "team-changes.json", "hook.log", "hosts.json"} <= names
    form = r"""state_dir(?:\}| \+ ")/([a-z_-]+)/"""
    directories = {name for text in texts for name in re.findall(form, text)}
    assert {"cursors", "projects", "git"} <= directories
    for name in names | {f"{directory}/x.json" for directory in directories}:
        path = tmp_path / "state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert sort_out(str(tmp_path), str(tmp_path)) == ([str(tmp_path)], [])


def test_a_purge_that_nobody_can_confirm_changes_nothing(machine: Machine) -> None:
    with_past(machine)
    before = tree(machine.home)
    done = machine.install("--uninstall", "--purge")
    assert done.returncode == 1
    assert "~/agent/conversations" in done.stderr
    assert "add --yes to delete without a question" in done.stderr
    assert tree(machine.home) == before


def test_a_purge_of_one_home_leaves_what_the_person_s_other_homes_share(machine: Machine) -> None:
    with_past(machine)
    done = machine.install("--uninstall", "--purge", "--yes", "--home", str(machine.claude))
    assert "~/.session-memory, because other homes use it too" in done.stdout
    assert (machine.home / ".session-memory/conversations").is_dir()


@pytest.mark.parametrize("has_ledger", [True, False])
def test_a_home_that_moved_gets_back_its_bytes(machine: Machine, has_ledger: bool) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude/settings.json").write_text(MINE)
    before = tree(agent)
    machine.installed("--home", str(agent), "--allow", "--agents-skills")
    moved = machine.home / "elsewhere/agent"
    moved.parent.mkdir()
    agent.rename(moved)
    if not has_ledger:
        (machine.program_dir / "installed.json").unlink()
    done = uninstalled(machine, "--home", str(moved))
    assert [home["path"] for home in done["homes"]] == [str(moved)]
    assert tree(moved) == before
    if has_ledger:
        assert str(agent) not in (machine.program_dir / "installed.json").read_text()


def test_a_home_that_moved_and_was_changed_since_loses_only_what_is_ours(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.installed("--home", str(agent), "--allow")
    moved = agent.rename(machine.home / "moved")
    settings = moved / ".claude/settings.json"
    settings.write_text(json.dumps({"model": "opus", **json.loads(settings.read_text())}))
    uninstalled(machine, "--home", str(moved))
    assert json.loads(settings.read_text()) == {"model": "opus"}
    assert not (moved / ".claude/skills").exists()


def test_a_whole_uninstall_says_what_it_could_not_reach_and_that_home_can_still_be_undone(
    machine: Machine,
) -> None:
    agent = agent_home(machine.home / "agent")
    (agent / ".claude/settings.json").write_text(MINE)
    before = tree(agent)
    machine.installed("--home", str(agent), "--home", str(machine.claude))
    moved = agent.rename(machine.home / "moved")
    done = machine.install("--uninstall")
    assert "~/agent is missing, so nothing was removed from it." in " ".join(done.stdout.split())
    assert not machine.program_dir.exists()
    assert uninstalled(machine, "--home", str(moved))["unreachable"] == []
    assert tree(moved) == before


@pytest.mark.parametrize("has_ledger", [True, False])
def test_settings_that_cannot_be_read_keep_only_their_home_and_the_program(
    machine: Machine, has_ledger: bool
) -> None:
    gemini = machine.home / ".gemini/settings.json"
    gemini.parent.mkdir()
    before = tree(machine.claude)
    machine.installed()
    if not has_ledger:  # it knows that there was no file
        (machine.program_dir / "installed.json").unlink()
        before["settings.json"] = (0o100600, b"{}\n")
    skills = machine.home / ".agents"
    with_skills = tree(skills)
    whole = gemini.read_text()
    gemini.write_text(whole.replace(":", "", 1))
    planned, done = machine.install("--uninstall", "--dry-run"), machine.install("--uninstall")
    for said in (planned, done):
        assert said.returncode == 1
        assert "Not uninstalled: ~/.gemini/settings.json:2:" in " ".join(said.stdout.split())
        assert "correct it and run this command again" in " ".join(said.stdout.split())
        assert "~/.agents: Gemini CLI still uses the skills there" in " ".join(said.stdout.split())
        assert "The program stays" in said.stdout
    assert tree(skills) == with_skills != {}
    assert gemini.read_text() == whole.replace(":", "", 1)
    assert tree(machine.claude) == before
    assert machine.program_dir.exists()
    alone = machine.install("--uninstall", "--runtime", "gemini")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "correct it and run this command again" in alone.stderr
    gemini.write_text(whole)
    assert uninstalled(machine)["refused"] == []
    assert not machine.program_dir.exists()
    assert not skills.exists()


def test_a_broken_list_of_servers_that_names_the_program_keeps_its_home_and_the_program(
    machine: Machine,
) -> None:
    servers = machine.home / ".copilot/mcp-config.json"
    servers.parent.mkdir()
    machine.installed()
    whole = servers.read_text()
    servers.write_text(whole.replace(":", "", 1))
    done = machine.install("--uninstall")
    assert done.returncode == 1
    assert "Not uninstalled: ~/.copilot/mcp-config.json:" in " ".join(done.stdout.split())
    assert "The program stays" in done.stdout
    assert machine.program_dir.exists()
    servers.write_text("{broken")
    assert uninstalled(machine)["refused"] == []
    assert servers.read_text() == "{broken"
    assert not machine.program_dir.exists()


@pytest.mark.parametrize("text", ['{"hooks" 1}', "[]"])
@pytest.mark.parametrize("has_ledger", [True, False])
def test_settings_that_cannot_be_read_keep_nothing_if_they_have_nothing_of_ours(
    machine: Machine, has_ledger: bool, text: str
) -> None:
    gemini = machine.home / ".gemini/settings.json"
    gemini.parent.mkdir()
    machine.installed()
    if not has_ledger:
        (machine.program_dir / "installed.json").unlink()
    gemini.write_text(text)
    assert uninstalled(machine)["refused"] == []
    assert gemini.read_text() == text
    assert not machine.program_dir.exists()


def test_a_home_that_cannot_be_written_keeps_only_itself_and_the_program(machine: Machine) -> None:
    gemini = machine.home / ".gemini"
    gemini.mkdir()
    before = tree(machine.claude)
    machine.installed()
    installed = tree(gemini)
    gemini.chmod(0o500)
    words = [PYTHON, str(REPOSITORY / "install.py"), "--uninstall"]
    done = subprocess.run(
        words,
        env=machine.environ,
        cwd=machine.home,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=bind_permissions,
    )
    assert done.returncode == 1
    said = "Not uninstalled: ~/.gemini/settings.json: ~/.gemini cannot be written to"
    assert said in " ".join(done.stdout.split())
    assert (tree(gemini), tree(machine.claude)) == (installed, before)
    gemini.chmod(0o700)
    assert uninstalled(machine)["refused"] == []
    assert not machine.program_dir.exists()


def test_installs_and_uninstalls_at_once_lose_nothing(machine: Machine) -> None:
    homes = [agent_home(machine.home / f"agent{number}") for number in range(4)]
    before = {home: tree(home) for home in homes}
    machine.installed("--home", str(homes[0]))

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        while True:
            done = machine.run(PYTHON, str(machine.source / "install.py"), *options)
            if "another install is running" not in done.stderr:
                return done

    jobs = [("--home", str(home)) for home in homes[1:]] + [
        ("--uninstall", "--home", str(homes[0]))
    ]
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in pool.map(lambda job: run(*job), jobs):
            assert done.returncode == 0, done.stderr
    known = json.loads((machine.program_dir / "installed.json").read_text())["homes"]
    assert sorted(known) == sorted(map(str, homes[1:]))
    with ThreadPoolExecutor(3) as pool:
        words = [("--uninstall", "--home", str(home)) for home in homes[1:]]
        for done in pool.map(lambda job: run(*job), words):
            assert done.returncode == 0, done.stderr
    assert {home: tree(home) for home in homes} == before


def test_a_whole_uninstall_beside_an_install_leaves_either_all_or_nothing(machine: Machine) -> None:
    home = agent_home(machine.home / "agent")
    machine.installed("--home", str(home))
    with ThreadPoolExecutor(2) as pool:
        script = str(machine.source / "install.py")
        gone = pool.submit(machine.run, PYTHON, script, "--uninstall")
        there = pool.submit(machine.run, PYTHON, script, "--home", str(home))
        assert gone.result().returncode == 0
        assert there.result().returncode in (
            0,
            1,
        )  # 1: the environment was gone, and no index could be reached for another
    has_hooks = (
        "UserPromptSubmit" in (home / ".claude/settings.json").read_text()
        if (home / ".claude/settings.json").exists()
        else False
    )
    assert has_hooks == (machine.program_dir / "installed.json").exists()
    assert has_hooks == (machine.program_dir / "app/hooks/user_prompt_submit.py").exists()


def test_a_home_whose_skills_alone_are_left_is_recognised(machine: Machine) -> None:
    agent = agent_home(machine.home / "agent")
    machine.installed("--home", str(agent))
    (agent / ".claude/settings.json").unlink()
    moved = machine.home / "moved"
    shutil.move(agent, moved)
    uninstalled(machine, "--home", str(moved))
    assert not (moved / ".claude/skills").exists()


def test_a_purge_deletes_what_is_ours_file_by_file_and_keeps_the_rest(machine: Machine) -> None:
    agent = with_past(machine)
    theirs = [
        agent / "conversations/with-mum.md",
        agent / "memories/holiday.md",
        agent / "memories/facts.md.bak",
        machine.home / ".session-memory/store/shopping.md",
        machine.home / ".session-memory/notes.txt",
    ]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("## mine\n")
    (agent / "memories/link").symlink_to(machine.home / "elsewhere")
    planned = machine.install("--uninstall", "--purge", "--dry-run")
    done = machine.install("--uninstall", "--purge", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(path.read_text() == "## mine\n" for path in theirs)
    assert (agent / "memories/link").is_symlink()
    for told in (planned.stdout, done.stdout):
        assert "~/agent/conversations/with-mum.md (not ours)" in " ".join(told.split())
    left = [path for path in (machine.home / ".session-memory").rglob("*") if path.is_file()]
    assert sorted(left) == sorted(theirs[3:])


def test_an_uninstall_names_what_others_wrote_and_how_to_remove_it(machine: Machine) -> None:
    codex = machine.home / ".codex"
    codex.mkdir()
    own = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}
    (codex / "hooks.json").write_text(json.dumps(own))
    machine.install()
    marks = ["stop:0:0", "user_prompt_submit:0:0", "session_start:0:0"]
    states = [
        f'[hooks.state."{codex}/hooks.json:{mark}"]\ntrusted_hash = "sha256:00"\n' for mark in marks
    ]
    server = '[mcp_servers.past]\ncommand = "session-memory"\nargs = ["mcp"]\n\n[mcp_servers.other]\ncommand = "x"\n'
    (codex / "config.toml").write_text("\n".join([*states, server]))
    servers = {
        "mcpServers": {
            "sessions": {"command": "/x/session-memory", "args": ["mcp"]},
            "db": {"command": "db"},
        }
    }
    (machine.home / ".claude.json").write_text(
        json.dumps({"projects": {"/srv/session-memory": servers}})
    )
    host = machine.home / "agents"
    (host / "groups/main").mkdir(parents=True)
    (machine.home / ".session-memory/state").mkdir(parents=True)
    (machine.home / ".session-memory/state/hosts.json").write_text(json.dumps([str(host)]))
    planned = machine.install("--uninstall", "--dry-run")
    done = machine.install("--uninstall")
    for said in (" ".join(planned.stdout.split()), " ".join(done.stdout.split())):
        assert (
            "2 marks of trust for hooks that are gone, in ~/.codex/config.toml: delete the tables"
            in said
        )
        assert "the MCP server past in ~/.codex/config.toml: delete the entry there" in said
        assert "the MCP server sessions in ~/.claude.json: delete" in said
        assert (
            "the host ~/agents, with 1 group and their sessions: stop it, then delete the directory"
            in said
        )
        assert "server db" not in said
        assert "server other" not in said


def test_where_nothing_is_left_nothing_is_named(machine: Machine) -> None:
    machine.install()
    assert uninstalled(machine)["left"] == []
