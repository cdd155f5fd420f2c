"""Notices of `agents --watch`: off by default, once each, and only by the person's own settings."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents_scene import noted_process
from own_process import plain_environment
from records import append, assistant, exchange, user
from store_scene import StoreUser

from session_memory.app.active_sessions import ActiveSession
from session_memory.app.notices import Notices
from session_memory.app.session_reader import SessionReader
from session_memory.sessions.states import ASKS, WAITS, WORKING, State

WAIT_SECONDS = 60
HOSTILE = "make; $(touch broken) `touch broken` --help"


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path)


def program(person: StoreUser) -> Path:
    """A program that writes each of its arguments on a line of the file `sent`."""
    path = person.home / "notify"
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> {person.home}/sent\n")
    path.chmod(0o755)
    return path


def sent(person: StoreUser, lines: int = 0) -> list[str]:
    """What the program was given, once there are so many lines."""
    path, until = person.home / "sent", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            break
        if not lines:
            time.sleep(0.5)
            break
        time.sleep(0.05)
    return path.read_text().splitlines() if path.exists() else []


def notices(person: StoreUser, notes: list[str] | None = None) -> Notices:
    return Notices(plain_environment(person.home), (notes if notes is not None else []).append)


def test_nothing_is_sent_unless_the_person_turned_it_on(person: StoreUser) -> None:
    person.config(f"notice_command: [{program(person)}]\n")
    notices(person).send("waits", ["a"])
    assert sent(person) == []


def test_each_notice_is_sent_once_by_several_watchers_as_one_argument(person: StoreUser) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}, --title]\n")
    for _ in range(2):
        notices(person).send(HOSTILE, ["a", "waits", 1])
    assert sent(person, 2) == ["--title", HOSTILE]
    notices(person).send("again", ["a", "waits", 2])
    assert sent(person, 4)[2:] == ["--title", "again"]
    assert not (person.home / "broken").exists()


RING = "import os; from session_memory.app.notices import Notices; Notices(os.environ, print).send('waits', 'a')"


def test_the_bell_rings_on_a_terminal_and_nothing_is_written_to_a_pipe(person: StoreUser) -> None:
    person.config("notices: bell\n")
    shown, terminal = pty.openpty()
    environ = {**plain_environment(person.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RING]
    subprocess.run(command, stdout=terminal, env=environ, check=True, timeout=WAIT_SECONDS)
    assert os.read(shown, 100) == b"\a"
    for descriptor in (shown, terminal):
        os.close(descriptor)

    again = [sys.executable, "-c", RING.replace("'a'", "'b'")]
    done = subprocess.run(again, capture_output=True, env=environ, check=True, timeout=WAIT_SECONDS)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_repository_cannot_set_the_command(
    person: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = person.home / "project"
    (project / ".session-memory").mkdir(parents=True)
    text = f"notices: command\nnotice_command: [{program(person)}]\n"
    (project / ".session-memory" / "config.yaml").write_text(text)
    (project / "notify-send").write_text((person.home / "notify").read_text())
    (project / "notify-send").chmod(0o755)
    monkeypatch.chdir(project)
    notices(person).send("waits", ["a"])
    person.config("notices: desktop\n")
    environ = {**plain_environment(person.home), "PATH": f".:{os.pathsep}"}
    Notices(environ, [].append).send("waits", ["b"])
    assert sent(person) == []


def test_a_program_that_is_missing_is_noted_once(person: StoreUser) -> None:
    person.config("notices: command\nnotice_command: [/nowhere/notify]\n")
    notes: list[str] = []
    watcher = notices(person, notes)
    for number in range(3):
        watcher.send("waits", [number])
    until = time.monotonic() + WAIT_SECONDS
    while not notes and time.monotonic() < until:
        time.sleep(0.05)
    assert len(notes) == 1
    assert "/nowhere/notify" in notes[0]


def test_a_program_that_fails_is_noted_once(person: StoreUser) -> None:
    person.config("notices: command\nnotice_command: [sh, -c, exit 3]\n")
    notes: list[str] = []
    watcher = notices(person, notes)
    for number in range(3):
        watcher.send("waits", [number])
    watcher.finish()
    assert len(notes) == 1
    assert "exit status 3" in notes[0]


def test_a_session_that_its_user_opened_again_sends_nothing(person: StoreUser) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}]\n")
    watcher, now = notices(person), time.time()
    waiting = State(WAITS, now)
    opened = ActiveSession("opened", "", "claude-code", "shop", "", now - 86_400, state=waiting)
    watcher.follow([])
    watcher.follow([opened, opened._replace(id="new", project="app", last_at=now)])
    watcher.finish()
    assert sent(person, 1) == ["waits for you: app"]


def test_a_page_that_is_opened_again_sends_nothing_of_the_time_between(
    person: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}]\n")
    watcher, now = notices(person), time.time()
    working = ActiveSession("a", "", "claude-code", "shop", "", now, state=State(WORKING, now))
    watcher.follow([working])
    with monkeypatch.context() as later:
        later.setattr("session_memory.app.notices.NEWS_SECONDS", -1.0)
        watcher.follow([working._replace(state=State(WAITS, now))])
    watcher.follow([working._replace(state=State(ASKS, now, "Bash", "make"))])
    watcher.finish()
    assert sent(person, 1) == ["asks for approval: shop: Bash: make"]


def test_a_secret_in_the_question_of_a_session_is_redacted_before_it_is_shortened(
    person: StoreUser,
) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}]\n")
    person.session("a", *exchange("hi", "Hi.", cwd=str(person.home), at=time.time()))
    question = "use the key ghp_" + "a1B2" * 9 + " for it?"
    watcher = notices(person)
    with noted_process(person.home / ".claude", "a", "waiting", question):
        environ = plain_environment(person.home)
        [session] = SessionReader(None, environ, delivery_seconds=0.0).read(time.time())
    assert "a1B2" not in session.state.reason
    watcher.send_if_waiting(session)
    watcher.finish()
    [text] = sent(person, 1)
    assert ": use the key " in text
    assert "a1B2" not in text


@pytest.mark.parametrize("ends", ["it is late", "nobody watches any more"])
def test_a_program_ends_with_the_processes_that_it_started(
    person: StoreUser, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    pids = person.home / "pids"
    script = f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    person.config(f"notices: command\nnotice_command: [sh, -c, '{script}']\n")
    notes: list[str] = []
    watcher = notices(person, notes)
    if ends == "it is late":
        monkeypatch.setattr("session_memory.app.notices.SECONDS", 1.0)
    watcher.send("waits", ["a"])
    until = time.monotonic() + WAIT_SECONDS
    while not pids.exists() and time.monotonic() < until:
        time.sleep(0.05)
    running = [int(pid) for pid in pids.read_text().split()]
    if ends != "it is late":
        watcher.close()
    while any(map(runs, running)) and time.monotonic() < until:
        time.sleep(0.05)
    assert [pid for pid in running if runs(pid)] == []
    watcher.close()
    assert len(notes) == (ends == "it is late")


def runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:1] not in ("", "Z")


@contextmanager
def watching(person: StoreUser) -> Iterator[None]:
    """`agents --watch`, which has read the sessions once."""
    from fork_server import Started

    log = person.home / "watch.log"
    process = Started(["agents", "--watch", "--json"], person.environment, person.home, log)
    try:
        until = time.monotonic() + WAIT_SECONDS
        while "{" not in log.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(15)
        process.wait(WAIT_SECONDS)


def test_watch_sends_a_notice_when_a_session_begins_to_ask_but_not_for_earlier_ones(
    person: StoreUser,
) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}]\n")
    where = {"cwd": str(person.home), "at": time.time()}
    person.session("waits", *exchange("say hello", "Hello.", **where))
    path = person.session("asks", user("build it", **where))
    config_dir = person.home / ".claude"
    append(path, assistant(("Bash", {"command": "make"}), **where))
    with (
        noted_process(config_dir, "waits", "idle"),
        watching(person),
        noted_process(config_dir, "asks", "waiting", "permission prompt"),
    ):
        [notice] = sent(person, 1)
    assert notice.startswith("asks for approval: ")
    assert notice.endswith(": Bash: make")


def test_a_session_that_its_user_has_just_opened_sends_no_notice(person: StoreUser) -> None:
    person.config(f"notices: command\nnotice_command: [{program(person)}]\n")
    where = {"cwd": str(person.home), "at": time.time()}
    for id in ("open", "opened"):
        person.session(id, *exchange("say hello", "Hello.", **where))
    path = person.session("asks", user("build it", **where))
    append(path, assistant(("Bash", {"command": "make"}), **where))
    config_dir = person.home / ".claude"
    with (
        noted_process(config_dir, "open", "idle"),
        watching(person),
        noted_process(config_dir, "opened", "idle"),
    ):
        log, until = person.home / "watch.log", time.monotonic() + WAIT_SECONDS
        while '"opened"' not in log.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        with noted_process(config_dir, "asks", "waiting", "permission prompt"):
            [notice] = sent(person, 1)
    assert notice.startswith("asks for approval: ")


def test_the_end_of_watch_ends_a_program_that_still_runs(person: StoreUser) -> None:
    pid_file = person.home / "pid"
    script = f"echo $$ > {pid_file}; sleep 600; true"
    person.config(f"notices: command\nnotice_command: [sh, -c, '{script}']\n")
    where = {"cwd": str(person.home), "at": time.time()}
    person.session("open", *exchange("say hello", "Hello.", **where))
    path = person.session("asks", user("build it", **where))
    append(path, assistant(("Bash", {"command": "make"}), **where))
    with (
        noted_process(person.home / ".claude", "open", "idle"),
        watching(person),
        noted_process(person.home / ".claude", "asks", "waiting", "permission prompt"),
    ):
        until = time.monotonic() + WAIT_SECONDS
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
    assert not runs(int(pid_file.read_text()))
