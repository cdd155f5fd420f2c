"""The real Hermes: told with its prompts, refused an edit, heard, and read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.hermes import CONFIG, PACKAGE, Hermes
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from fakes.fake_llm import FakeLLM
from runtimes_scene import ClaudeReader
from skills_scene import link_packages
from store_scene import StoreUser

pytestmark = [pytest.mark.client, pytest.mark.slow]
SETTINGS = (
    CONFIG.replace("\n", "\r\n") + "hooks:  # mine\r\n  pre_tool_call:\r\n  - command: 'true'"
)


@pytest.fixture
def hermes(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Hermes]:
    place = npm_place(PACKAGE)
    with FakeLLM() as model:
        yield Hermes(tmp_path, place, model)


@pytest.fixture
def machine(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        yield InstalledClients(tmp_path, npm_place, stack, "hermes", SETTINGS)


def program_of(machine: InstalledClients) -> Hermes:
    program = machine.tested.program
    assert isinstance(program, Hermes)
    return program


def test_hermes_hears_of_the_others_edits_and_the_others_of_its_own(
    machine: InstalledClients,
) -> None:
    machine.check_edits_are_heard_both_ways()


def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(
    machine: InstalledClients,
) -> None:
    machine.check_an_edit_is_refused_once()


def test_hooks_run_once_they_are_allowed_and_an_uninstall_gives_the_settings_back(
    machine: InstalledClients,
) -> None:
    hermes, claude = program_of(machine), machine.users["claude-code"]
    link_packages(machine.machine.program_dir / "env")
    program = str(machine.machine.program_dir / "bin/session-memory")
    claude.ask("paint the door")
    hermes.run("begin", hooks="")
    assert "paint the door" not in machine.tested.requests()
    checked = machine.machine.run(program, "doctor", "hooks")
    assert "not trusted yet, so Hermes does not run them" in " ".join(checked.stdout.split())
    hermes.run("go on")
    assert '\\"paint the door\\" (Claude Code' in machine.tested.requests()
    checked = machine.machine.run(program, "doctor", "hooks")
    assert "not trusted yet" not in " ".join(checked.stdout.split())
    assert "recall" in hermes.execute("skills", "list")
    said = machine.check_an_uninstall_gives_the_settings_back(
        "logs/", "shell-hooks-allowlist.json", "state.db"
    )
    assert "3 commands that Hermes may still run" in " ".join(said.split())


def test_hooks_are_removed_after_hermes_has_written_its_settings(
    machine: InstalledClients,
) -> None:
    hermes = program_of(machine)
    hermes.execute("config", "set", "display.skin", "mono")
    written = machine.settings.read_text()
    assert "pre_llm_call" in written
    assert machine.machine.install("--uninstall").returncode == 0
    left = machine.settings.read_text()
    assert "session-memory" not in left
    assert "pre_llm_call" not in left
    assert "skin: mono" in left
    assert "- command: 'true'" in left


def of_hermes(user: StoreUser) -> list[dict[str, object]]:
    sessions = user.result("sessions", "--all")["sessions"]
    return [one for one in sessions if one["runtime"] == "hermes"]


def test_what_it_did_is_read_found_and_told_to_claude_code(hermes: Hermes) -> None:
    user = StoreUser(hermes.home)
    claude, other = ClaudeReader.two_of_notes(hermes.home, hermes.project)
    edit = {"mode": "replace", "path": "notes.txt", "old_string": "alpha", "new_string": "gamma"}
    orders: list[tuple[str, dict[str, object]]] = [
        ("read_file", {"path": "notes.txt"}),
        ("patch", edit),
        ("terminal", {"command": "echo 'Error: the gate is shut'; echo $HERMES_SESSION_ID; false"}),
    ]
    hermes.model.scripts["mend the gate"] = [(name, json.dumps(given)) for name, given in orders]
    hermes.run("mend the gate")
    assert claude.file.read_text() == "gamma\nbeta\n"
    told = claude.prompt()
    assert '! notes.txt: edited just now by \\"mend the gate\\" (Hermes), after you read' in told
    assert "! notes.txt: edited" in other.about_to_edit()
    assert user.run("ingest").returncode == 0
    [session] = of_hermes(user)
    assert session["name"] == "mend the gate"
    assert user.result("search", "gate")["hits"]
    printed = user.run("read", str(session["id"])).stdout
    assert "[patch notes.txt]" in printed
    [failed] = user.result("errors", "Error: the gate is shut")["seen"]
    assert "the gate is shut" in json.dumps(failed)
    assert any(str(session["id"]) in request for request in hermes.requests())  # commands know it
    counted = {row["runtime"]: row for row in user.result("costs", "--by", "runtime")["rows"]}
    assert counted["hermes"]["input_tokens"] > counted["hermes"]["output_tokens"] > 0
    hermes.run("and paint it", "--resume", str(session["id"]))
    assert user.run("ingest").returncode == 0
    assert len(of_hermes(user)) == 1
    assert "and paint it" in user.run("read", str(session["id"])).stdout


def test_a_sub_agent_is_no_session_and_its_edit_is_its_session_s(hermes: Hermes) -> None:
    user = StoreUser(hermes.home)
    claude, _ = ClaudeReader.two_of_notes(hermes.home, hermes.project)
    edit = {"mode": "replace", "path": "notes.txt", "old_string": "alpha", "new_string": "gamma"}
    task = [("delegate_task", json.dumps({"goal": "SUBTASK change the notes"}))]
    wait = [("terminal", json.dumps({"command": "sleep 20"}))]
    hermes.model.scripts["SUBTASK change the notes"] = [("patch", json.dumps(edit))]
    hermes.model.scripts["start a helper"] = [*task, *wait]
    hermes.run("start a helper")
    assert claude.file.read_text() == "gamma\nbeta\n"
    assert '! notes.txt: edited just now by \\"start a helper\\" (Hermes)' in claude.prompt()
    assert user.run("ingest").returncode == 0
    assert [session["name"] for session in of_hermes(user)] == ["start a helper"]


def test_a_command_in_a_second_profile_knows_its_session_there(hermes: Hermes) -> None:
    user, usual, coder = StoreUser(hermes.home), hermes.directory, "profiles/coder"
    hermes.run("mend the gate")
    [session] = [str(each["id"]) for each in of_hermes(user)]
    (usual / coder).mkdir(parents=True)
    for file in (hermes.config, *usual.glob("state.db*")):
        shutil.copy(file, usual / coder)
    named = {"command": "echo home=$HERMES_HOME; echo session=$HERMES_SESSION_ID"}
    hermes.model.scripts["and paint it"] = [("terminal", json.dumps(named))]
    hermes.execute("-p", "coder", "chat", "-Q", "--yolo", "--resume", session, "-q", "and paint it")
    request = hermes.requests()[-1]
    assert f"home={usual / coder}" in request
    assert f"session={session}" in request
    environ = {"HERMES_HOME": str(usual / coder), "HERMES_SESSION_ID": session}
    listed = user.result("sessions", "--all", **environ)["sessions"]
    assert [each["id"] for each in listed if each["is_this_one"]] == [f"{session}-coder"]
