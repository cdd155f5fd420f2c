"""A request after a slash command is shown as the person's message everywhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hooks_scene import PlainUser
from records import assistant, exchange, user
from store_scene import MONDAY, StoreUser

from session_memory.app.upkeep.runner import do_upkeep

WORDS = "/plan-work make the marigold parser accept umlauts"
SKILL = (
    "<command-message>plan-work</command-message>\n<command-name>/plan-work</command-name>\n"
    "<command-args>make the marigold parser accept umlauts</command-args>"
)
ANSWER = (
    "The parser accepts umlauts in names of marigolds now, and the tests of the parser pass. " * 8
)
MORE = [record for _ in range(3) for record in exchange("go on", ANSWER, at=MONDAY)]


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A person whose session of an hour ago began with a skill, edited a file and answered."""
    machine = StoreUser(tmp_path)
    edit = {
        "file_path": "/srv/agent/parser.py",
        "old_string": "a",
        "new_string": "ä = True  # marigolds too",
    }
    body = user(
        [{"type": "text", "text": "Base directory for this skill: /x\n\nPlan the work."}],
        isMeta=True,
        at=MONDAY,
    )
    machine.session(
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        user(SKILL, at=MONDAY),
        body,
        assistant("", ("Edit", edit), at=MONDAY),
        *MORE,
    )
    machine.run("ingest")
    return machine


@pytest.mark.parametrize(
    "words",
    [
        ("search", "marigold", "umlauts"),
        ("search", "marigold", "--json"),
        ("read", "7c9e6679"),
        ("show", "1"),
        ("sessions", "--all"),
        ("conversations",),
        ("handoff", "7c9e6679"),
        ("export", "7c9e6679", "--full", "--format", "html"),
        ("export", "7c9e6679", "--format", "markdown"),
        ("export", "7c9e6679", "--format", "atif"),
    ],
    ids=" ".join,
)
def test_a_command_shows_the_request(machine, words):
    done = machine.run(*words)
    assert "make the marigold parser accept umlauts" in " ".join(done.stdout.split()), done.stderr


def test_the_log_of_memories_and_the_archive_have_the_request(machine):
    with patch.dict(os.environ):
        do_upkeep(str(machine.database.parents[1]), machine.environment)
    assert machine.run("archive", "7c9e6679").returncode == 0
    pages = [
        path for path in machine.home.rglob("*.md") if WORDS in " ".join(path.read_text().split())
    ]
    assert {path.parent.name for path in pages} >= {"episodes", "conversations"}, [
        *machine.home.rglob("*.md")
    ]


def test_another_session_is_told_the_request_as_its_title(tmp_path):
    plain = PlainUser(tmp_path)
    plain.session(user(SKILL), assistant(ANSWER))
    assert json.dumps(WORDS)[1:-1][:40].encode() in plain.run()
