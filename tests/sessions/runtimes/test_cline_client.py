"""The real Cline, with a fake model: what it writes today is read, and its edits are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from clients.cline import PACKAGE, Cline
from clients.npm import NpmPlace
from fakes.fake_llm import FakeLLM
from runtimes_scene import ClaudeReader
from store_scene import StoreUser

pytestmark = pytest.mark.slow


@pytest.fixture
def cline(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Cline]:
    with FakeLLM() as model, closing(Cline(tmp_path, npm_place(PACKAGE), model)) as program:
        yield program


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
