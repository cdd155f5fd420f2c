"""The real Cline, with a fake model: its sessions are read, and after an install it is told and warned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from clients.cline import PACKAGE, Cline
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from fakes.fake_llm import FakeLLM
from runtimes_scene import EDIT, ClaudeReader
from store_scene import StoreUser

pytestmark = pytest.mark.slow
SETTINGS = '{"mcpServers": {\r\n  "mine": {"command": "true", "args": [], "disabled": true}\r\n}}'


@pytest.fixture
def cline(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Cline]:
    with FakeLLM() as model, closing(Cline(tmp_path, npm_place(PACKAGE), model)) as program:
        yield program


@pytest.fixture
def clines(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        clients = InstalledClients(tmp_path, npm_place, stack, "cline", SETTINGS)
        stack.callback(program_of(clients).close)
        yield clients


def program_of(clines: InstalledClients) -> Cline:
    program = clines.tested.program
    assert isinstance(program, Cline)
    return program


def test_what_it_did_is_read_found_and_told_to_claude_code(cline: Cline) -> None:
    user = StoreUser(cline.home)
    claude, other = ClaudeReader.two_of_notes(cline.home, cline.project)
    notes = claude.file
    orders: list[tuple[str, dict[str, object]]] = [
        ("read_files", {"files": [{"path": str(notes)}]}),
        ("editor", {"path": str(notes), "old_text": "alpha", "new_text": "gamma"}),
        ("run_commands", {"commands": ["true", "echo 'Error: the gate is shut'; false"]}),
    ]
    cline.model.scripts["mend the gate"] = [(name, json.dumps(given)) for name, given in orders]
    cline.run("mend the gate")
    assert notes.read_text() == "gamma\nbeta\n"
    told = claude.prompt()
    assert '! notes.txt: edited just now by \\"mend the gate\\" (Cline), after you read' in told
    assert "! notes.txt: edited" in other.about_to_edit()
    assert user.run("ingest").returncode == 0
    sessions = user.result("sessions", "--all")["sessions"]
    [session] = [one for one in sessions if one["runtime"] == "cline"]
    assert session["name"] == "mend the gate"
    printed = user.run("read", session["id"]).stdout
    assert f"[editor {notes.name}]" in printed or f"[editor {notes}]" in printed
    assert "user_input" not in printed
    assert user.result("search", "gate")["hits"]
    assert user.result("errors", "Error: the gate is shut")["all"] == 1


@pytest.mark.client
def test_cline_hears_of_the_others_edits_and_the_others_of_its_own(
    clines: InstalledClients,
) -> None:
    clines.check_edits_are_heard_both_ways()


@pytest.mark.client
def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(
    clines: InstalledClients,
) -> None:
    clines.check_an_edit_is_refused_once()


@pytest.mark.client
def test_an_edit_of_its_sub_agent_is_refused_once_and_then_heard(clines: InstalledClients) -> None:
    cline, claude, path = clines.tested, clines.users["claude-code"], clines.file("shared.txt")
    clines.reads(cline, path)
    clines.reads(claude, path)
    edit, task = cline.call(EDIT, str(path), "2", "3"), "change what is shared"
    cline.orders("delegate it", ("spawn_agent", {"systemPrompt": "You help.", "task": task}))
    cline.orders(task, edit, edit)
    hold = cline.model.hold(task, lambda request: "delegate it" not in json.dumps(request.body))
    words = ("delegate it", *cline.program.LAST)
    turn = threading.Thread(target=cline.program.say, args=words)
    turn.start()
    try:
        assert hold.reached.wait(120)
        claude.orders("mend it", claude.call(EDIT, str(path), "1", "2"))
        claude.ask("mend it")
    finally:
        hold.released.set()
        turn.join(120)
    assert path.read_text() == "3\n"
    assert "The call was not run." in cline.requests()
    assert "! shared.txt: edited" in claude.ask("go on")


@pytest.mark.client
def test_an_update_is_told_once_and_goes_on_in_the_terminal(clines: InstalledClients) -> None:
    cline, claude = clines.tested, clines.users["claude-code"]
    claude.ask("paint the door")
    cline.ask("begin here")
    cline.ask("go on")
    claude.ask("oil the hinge")
    asked = json.loads(cline.ask("go on again"))["messages"]
    told = [one["content"] for one in asked if one["role"] == "user"]
    assert [told[0], told[2], told[3]] == ["begin here", "go on", "go on again"]
    assert '"paint the door" (Claude Code' in told[1]
    assert "oil the hinge" in told[4]


@pytest.mark.client
def test_its_model_has_the_tools_and_an_uninstall_gives_the_settings_back(
    clines: InstalledClients,
) -> None:
    clines.check_its_model_has_the_tools("session-memory__list_sessions")
    clines.check_an_uninstall_gives_the_settings_back("data/sessions/", "data/logs/", "data/db/")
    assert not (clines.machine.home / ".cline/plugins").exists()


def test_the_command_of_a_handoff_starts_a_session_with_the_page(cline: Cline) -> None:
    cline.start("Please go on with the cart")
    assert any("Please go on with the cart" in request for request in cline.requests())
