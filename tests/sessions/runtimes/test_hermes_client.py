"""The real Hermes, with a fake model: what it writes today is read, and its edits are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.hermes import Hermes, UnavailableError, install_into
from fakes.fake_llm import FakeLLM
from runtimes_scene import ClaudeReader
from store_scene import StoreUser

pytestmark = [pytest.mark.client, pytest.mark.slow]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return install_into(tmp_path_factory.mktemp("hermes"))
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def hermes(tmp_path: Path, place: Path) -> Iterator[Hermes]:
    with FakeLLM() as model:
        yield Hermes(tmp_path, place, model)


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
