"""How many other sessions wait, in the status line: as `agents --short` counts them, a moment later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agents_scene import noted_process
from own_process import ROOT, plain_environment
from records import exchange
from store_scene import StoreUser

from session_memory.awareness.activity.status_line import COUNTED_SECONDS
from session_memory.sessions.settings.homes import person_home

WAIT_SECONDS = 60


class Person(StoreUser):
    """A person with two sessions of Claude Code, who wants the status line."""

    def line(self, session: str) -> str:
        """Return the status line of a session, as Claude Code asks for it."""
        [path] = self.projects.glob(f"*/{session}.jsonl")
        event = {"session_id": session, "transcript_path": str(path), "cwd": str(self.home)}
        return subprocess.run(
            [sys.executable, "-I", "-S", str(ROOT / "hooks" / "status_line.py")],
            input=json.dumps(event),
            env=plain_environment(self.home),
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=True,
        ).stdout.strip()

    @property
    def counted(self) -> Path:
        return Path(person_home(plain_environment(self.home)).waiting_file)

    def line_once_counted(self, session: str) -> str:
        """Let the line have the sessions counted, and return the next one."""
        self.counted.unlink(missing_ok=True)
        self.line(session)
        until = time.monotonic() + WAIT_SECONDS
        while not json.loads(self.counted.read_bytes())[0]:
            assert time.monotonic() < until
            time.sleep(0.05)
        return self.line(session)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person.config("statusline: true\n")
    assert person_home(plain_environment(person.home)).settings().statusline
    for name in ("first", "second"):
        person.session(name, *exchange("hello", "Hello.", cwd=str(person.home), at=time.time()))
    return person


def test_a_session_shows_how_many_others_wait(person: Person) -> None:
    config_dir = person.home / ".claude"
    with noted_process(config_dir, "first", "idle"):
        assert person.line_once_counted("first") == ""
        assert person.line("second") == "1 waits for you"
        with noted_process(config_dir, "second", "waiting", "permission prompt"):
            assert person.line_once_counted("first") == "1 waits for you"
            assert person.run("agents", "--short").stdout == "1 waits, 1 asks\n"
    assert person.line_once_counted("first") == ""


def test_an_old_count_is_not_shown_and_a_broken_one_is_made_anew(person: Person) -> None:
    with noted_process(person.home / ".claude", "second", "idle"):
        assert person.line_once_counted("first") == "1 waits for you"
        at, ids = json.loads(person.counted.read_bytes())
        person.counted.write_text(json.dumps([at - COUNTED_SECONDS, ids]))
        assert person.line("first") == ""
        person.counted.write_text("[")
        os.utime(person.counted, (1, 1))
        assert person.line("first") == ""
        until = time.monotonic() + WAIT_SECONDS
        while not person.line("first") and time.monotonic() < until:
            time.sleep(0.05)
        assert person.line("first") == "1 waits for you"


def test_without_the_status_line_nothing_is_counted(person: Person) -> None:
    person.config("statusline: false\n")
    assert not person_home(plain_environment(person.home)).settings().statusline
    assert person.line("first") == ""
    assert not person.counted.exists()
