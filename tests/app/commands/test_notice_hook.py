"""Notices by the hook that saw a session stop or ask: one, by a process that ends, and no other
while a watcher sends them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agents_scene import noted_process
from own_process import ROOT, plain_environment
from records import append, assistant, exchange, user
from store_scene import StoreUser

from session_memory.app import notices as notices_module
from session_memory.app.notices import Notices
from session_memory.common.system.process_table import ProcessTable

WAIT_SECONDS = 60
HOOK = str(ROOT / "hooks" / "session_waits.py")
SENDER = str(ROOT / "hooks" / "notice.py")


class Person(StoreUser):
    """A person with a session of Claude Code that waits, and a program that writes notices down."""

    def want(self, ending: str = "true") -> None:
        script = f'printf "%s\\\\n" "$0" >> {self.home}/sent; {ending}'
        self.config(f"notices: command\nnotice_command: [sh, -c, {json.dumps(script)}]\n")
        self.notices.is_claimed()  # reads the settings

    @property
    def notices(self) -> Notices:
        return Notices(plain_environment(self.home), print)

    def add_sessions(self) -> None:
        where = {"cwd": str(self.home), "at": time.time()}
        self.session("waits", *exchange("say hello", "Hello.", **where))
        path = self.session("asks", user("build it", **where))
        append(path, assistant(("Bash", {"command": "make"}), **where))
        for transcript in path.parent.iterdir():
            os.utime(transcript)

    def event(self, name: str, session: str) -> subprocess.CompletedProcess[bytes]:
        [path] = (self.home / ".claude" / "projects").glob(f"*/{session}.jsonl")
        event = {
            "hook_event_name": name,
            "session_id": session,
            "transcript_path": str(path),
            "cwd": str(self.home),
        }
        return subprocess.run(
            [sys.executable, "-I", "-S", HOOK],
            input=json.dumps(event).encode(),
            env=plain_environment(self.home),
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    def sent(self) -> list[str]:
        path = self.home / "sent"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person.add_sessions()
    return person


def senders() -> list[list[str]]:
    return [
        list(each.words) for each in ProcessTable.now().processes.values() if SENDER in each.words
    ]


def wait_for(is_so: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_each_notice_is_sent_once_and_no_process_stays(person: Person) -> None:
    person.want()
    config_dir = person.home / ".claude"
    with noted_process(config_dir, "waits", "idle"):
        for _ in range(2):
            done = person.event("Stop", "waits")
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        wait_for(lambda: person.sent() and not senders())
    assert len(person.sent()) == 1
    assert person.sent()[0].startswith("waits for you: ")
    with noted_process(config_dir, "asks", "waiting", "permission prompt"):
        person.event("PermissionRequest", "asks")
        wait_for(lambda: len(person.sent()) == 2 and not senders())
    assert person.sent()[1].endswith(": Bash: make")


def test_a_session_that_works_on_sends_nothing(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.want()
    with noted_process(person.home / ".claude", "asks", "busy"):
        person.event("Stop", "asks")
        wait_for(lambda: not senders())
    assert person.sent() == []


@pytest.mark.parametrize("kind", ["off", "bell"])
def test_the_hook_starts_nothing_unless_the_person_wants_notices_of_hooks(
    person: Person, kind: str
) -> None:
    person.want()
    person.config(f"notices: {kind}\n")
    assert person.notices.has_bell == (kind == "bell")
    with noted_process(person.home / ".claude", "waits", "idle"):
        assert person.event("Stop", "waits").returncode == 0
        assert senders() == []


def test_while_a_watcher_claims_all_sessions_the_hook_sends_nothing(person: Person) -> None:
    person.want()
    watcher = person.notices
    with noted_process(person.home / ".claude", "waits", "idle"):
        watcher.claim()
        person.event("Stop", "waits")
        wait_for(lambda: not senders())
        assert person.sent() == []
        watcher.close()
        person.event("Stop", "waits")
        wait_for(lambda: person.sent() and not senders())


def test_a_watcher_that_was_suspended_keeps_no_notice_back(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.want()
    watcher = person.notices
    watcher.claim()
    assert person.notices.is_claimed()
    monkeypatch.setattr(notices_module, "CLAIMED_SECONDS", 0.0)
    assert not person.notices.is_claimed()
    watcher.close()


def test_a_slow_program_delays_no_hook_and_ends(person: Person) -> None:
    person.want("sleep 600")
    with noted_process(person.home / ".claude", "waits", "idle"):
        began = time.monotonic()
        person.event("Stop", "waits")
        wait_for(person.sent)
        [sender] = senders()
        assert sender[-1] == "waits"
        wait_for(lambda: not senders())
    assert time.monotonic() - began < WAIT_SECONDS
    log = (person.home / ".session-memory" / "state" / "hook.log").read_text()
    assert "a notice cannot be sent: " in log


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"session_id": 1}'])
def test_a_hook_without_a_usable_event_fails_open(person: Person, content: bytes) -> None:
    person.want()
    done = subprocess.run(
        [sys.executable, "-I", "-S", HOOK],
        input=content,
        env=plain_environment(person.home),
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
