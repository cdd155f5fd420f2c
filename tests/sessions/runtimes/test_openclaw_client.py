"""The real OpenClaw, with a fake model: what it writes today is read, and its edits are told."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.npm import NpmPlace
from clients.openclaw import PACKAGE, OpenClaw
from fakes.fake_llm import FakeLLM
from runtimes_scene import ClaudeReader
from store_scene import StoreUser

pytestmark = pytest.mark.slow
WRITTEN_BY_IT = {"AGENTS.md", "IDENTITY.md", "SOUL.md", "USER.md"}


@pytest.fixture
def openclaw(tmp_path: Path, npm_place: NpmPlace) -> Iterator[OpenClaw]:
    with FakeLLM() as model:
        yield OpenClaw(tmp_path, npm_place(PACKAGE), model)


def test_what_it_did_is_read_found_and_told_to_claude_code(openclaw: OpenClaw) -> None:
    user = StoreUser(openclaw.home)
    claude, other = ClaudeReader.two_of_notes(openclaw.home, openclaw.project)
    notes = claude.file
    edit = {"path": "notes.txt", "edits": [{"oldText": "alpha", "newText": "gamma"}]}
    orders: list[tuple[str, dict[str, object]]] = [
        ("read", {"path": "notes.txt"}),
        ("edit", edit),
        ("exec", {"command": "echo 'Error: the gate is shut'; false"}),
    ]
    openclaw.run("one", "plan the garden")
    openclaw.model.scripts["mend the gate"] = [(name, json.dumps(given)) for name, given in orders]
    openclaw.run("one", "mend the gate")
    assert notes.read_text() == "gamma\nbeta\n"
    told = claude.prompt()
    assert (
        '! notes.txt: edited just now by \\"plan the garden\\" (OpenClaw), after you read' in told
    )
    assert "! notes.txt: edited" in other.about_to_edit()
    assert user.run("ingest").returncode == 0
    [session] = [
        one for one in user.result("sessions", "--all")["sessions"] if one["runtime"] == "openclaw"
    ]
    assert (session["id"], session["name"]) == ("one", "plan the garden")
    assert user.result("search", "garden")["hits"]
    printed = user.run("read", "one").stdout
    assert "[read notes.txt]" in printed
    assert "[edit notes.txt]" in printed
    [failed] = user.result("errors", "Error: the gate is shut")["seen"]
    assert "the gate is shut" in json.dumps(failed)
    assert {path.name for path in openclaw.project.iterdir()} > WRITTEN_BY_IT


def test_a_turn_that_was_stopped_hides_nothing(openclaw: OpenClaw) -> None:
    user = StoreUser(openclaw.home)
    hold = openclaw.model.hold("to be stopped")
    command = [*openclaw.command, "agent", "--local", "--session-id", "one", "--message"]
    process = subprocess.Popen(
        [*command, "a question to be stopped"],
        env=openclaw.environment,
        cwd=openclaw.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert hold.reached.wait(120)
        process.terminate()
        process.wait(120)
    finally:
        hold.released.set()
        process.kill()
    time.sleep(1)
    openclaw.run("one", "and another question")
    assert user.run("ingest").returncode == 0
    printed = user.run("read", "one").stdout
    assert "a question to be stopped" in printed
    assert "and another question" in printed
    assert "aborted" not in printed
