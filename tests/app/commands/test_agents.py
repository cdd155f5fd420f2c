"""`agents` lists the open sessions, who waits for their user first, and shows each change."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents_scene import noted_process
from git_scene import git, repository
from records import append, assistant, exchange, user
from store_scene import COMMAND, StoreUser

from session_memory.app.session_reader import SessionReader

WAIT_SECONDS = 60
APPROVAL = ("waiting", "permission prompt")


class Person(StoreUser):
    """Somebody with a repository `api`, in which their sessions of Claude Code work."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.repository = repository(home / "api", src__login="1\n")
        git(self.repository, "switch", "-q", "-c", "fix-login")
        self.config_dir = home / ".claude"

    def works(self, id: str, *records: dict[str, Any]) -> Path:
        path: Path = self.session(id, *records)
        return path

    def agents(self, *options: str) -> list[dict[str, Any]]:
        done = self.run("agents", "--json", *options)
        assert done.returncode == 0, done.stderr
        agents: list[dict[str, Any]] = json.loads(done.stdout)["agents"]
        return agents


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def at(person: Person) -> dict[str, Any]:
    """The fields of a record that is written now in the repository."""
    return {"cwd": str(person.repository), "at": time.time()}


def bash(command: str, person: Person) -> dict[str, Any]:
    return assistant(("Bash", {"command": command}), **at(person))


def test_who_waits_for_you_comes_first_with_what_it_asks(person: Person) -> None:
    person.works("done", *exchange("round the price", "Rounded.", **at(person)))
    person.works("asks", user("add a test", **at(person)), bash("npm test", person))
    person.works("works", user("fix the links", **at(person)), bash("make", person))
    person.works("over", *exchange("say hello", "Hello.", **at(person)))
    with (
        noted_process(person.config_dir, "works", "busy"),
        noted_process(person.config_dir, "done", "idle"),
        noted_process(person.config_dir, "asks", *APPROVAL),
    ):
        agents = person.agents()
        shown = person.run("agents").stdout.splitlines()
        everything = person.agents("--all")
    assert [(each["id"], each["state"]) for each in agents] == [
        ("asks", "asks for approval"),
        ("done", "waits for you"),
        ("works", "working"),
    ]
    assert (agents[0]["tool"], agents[0]["argument"]) == ("Bash", "npm test")
    assert [each["waits"] for each in agents] == [True, True, False]
    assert {(each["project"], each["branch"]) for each in agents} == {("api", "fix-login")}
    assert everything[-1]["state"] == "ended"
    assert shown[0].startswith("asks for approval  just now  api (fix-login)  claude-code  ")
    assert shown[0].endswith("Bash: npm test")
    assert shown[-1] == "1 session ended today: --all lists them."
    assert max(map(len, shown)) <= 100


def test_short_counts_the_states_and_prints_nothing_without_an_open_session(
    person: Person,
) -> None:
    assert person.run("agents", "--short").stdout == ""
    for id in ("one", "two", "asks", "works", "over"):
        person.works(id, user("build it", **at(person)), bash("make", person))
    with (
        noted_process(person.config_dir, "one", "idle"),
        noted_process(person.config_dir, "two", "idle"),
        noted_process(person.config_dir, "asks", *APPROVAL),
        noted_process(person.config_dir, "works", "busy"),
    ):
        text = person.run("agents", "--short").stdout
        shown = person.run("agents", "--short", "--json").stdout
    assert text == "2 wait, 1 asks, 1 works\n"
    assert shown.count("\n") == 1  # Waybar reads a line
    bar = json.loads(shown)
    assert (bar["text"], bar["class"]) == (text.strip(), "waits")
    assert bar["counts"]["asks for approval"] == 1
    assert person.run("agents", "--short", "--watch").returncode == 2


def test_short_counts_a_session_as_the_list_shows_it(person: Person) -> None:
    gone = person.home / "api-dates"
    before = {"cwd": str(person.repository), "at": time.time() - 60}
    moved = exchange("use dates", "Used.", cwd=str(gone), at=time.time())
    person.works("a", *exchange("begin", "Begun.", **before), *moved)
    with noted_process(person.config_dir, "a", "idle"):
        assert [each["state"] for each in person.agents()] == ["worktree gone"]
        assert person.run("agents", "--short").stdout == "1 without its worktree\n"


def test_an_open_session_of_last_week_is_listed_and_an_ended_one_is_not(person: Person) -> None:
    long_ago = {"cwd": str(person.repository), "at": time.time() - 7 * 86400}
    for id in ("open", "over"):
        path = person.works(id, *exchange("say hello", "Hello.", **long_ago))
        os.utime(path, (long_ago["at"], long_ago["at"]))
    with noted_process(person.config_dir, "open", "idle"):
        # as its terminal was opened before that
        listed = {each["id"] for each in person.agents("--all")}
    assert "over" not in listed


def test_a_session_in_another_worktree_names_it(person: Person) -> None:
    git(person.repository, "worktree", "add", "-q", "-b", "dates", str(person.home / "api-dates"))
    where = {"cwd": str(person.home / "api-dates"), "at": time.time()}
    person.works("a", *exchange("use dates", "Used.", **where))
    with noted_process(person.config_dir, "a", "idle"):
        row = person.run("agents").stdout
    assert "api/api-dates (dates)" in row


@contextmanager
def watching(person: Person, *options: str) -> Iterator[Callable[[str], str]]:
    """`agents --watch`; the yielded function waits for a line with a text and returns it."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "agents", "--watch", *options],
        env=person.environment,
        cwd=person.home,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None

    def wait_for(text: str) -> str:
        assert process.stdout is not None
        for line in process.stdout:
            if text in line:
                return line
        raise AssertionError(f"{text!r} was not printed")

    try:
        yield wait_for
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_watch_prints_a_line_for_each_change_and_ends_with_a_signal(person: Person) -> None:
    path = person.works("a", *exchange("round the price", "Rounded.", **at(person)))
    with watching(person, "--json") as wait_for:
        with noted_process(person.config_dir, "a", "idle"):
            assert json.loads(wait_for("waits for you"))["id"] == "a"
        with noted_process(person.config_dir, "a", *APPROVAL) as process:
            append(path, user("build it", **at(person)), bash("make", person))
            change = json.loads(wait_for("asks for approval"))
            assert change["before"] in ("waits for you", "ended")
            process.kill()
            process.wait()
            assert json.loads(wait_for('"ended"'))["state"] == "ended"


def test_a_session_is_listed_as_soon_as_its_transcript_has_a_message(person: Person) -> None:
    path = person.works("a", {"type": "summary", "summary": "x", "leafUuid": "y"})
    os.utime(path)
    reader = SessionReader(None, person.environment, share=1000.0)
    with noted_process(person.config_dir, "a", "busy"):
        assert reader.read(time.time()) == []
        append(path, user("round the price", **at(person)))
        assert [each.state.name for each in reader.read(time.time())] == ["working"]


def test_a_session_of_copilot_is_listed_although_its_folder_comes_before_its_transcript(
    person: Person,
) -> None:
    folder = person.home / ".copilot" / "session-state" / "a"
    folder.mkdir(parents=True)
    reader = SessionReader(None, person.environment, share=1000.0)
    assert reader.read(time.time()) == []
    data = {"content": "round the price", "messageId": "1"}
    record = {"type": "user.message", "data": data, "id": "1", "parentId": None}
    start = {"type": "session.start", "data": {"sessionId": "a"}, "id": "0", "parentId": None}
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    append(folder / "events.jsonl", {**start, "timestamp": at}, {**record, "timestamp": at})
    assert [each.id for each in reader.read(time.time())] == ["a"]


def test_watch_redraws_a_terminal_and_leaves_it_as_it_was(person: Person) -> None:
    person.works("a", *exchange("round the price", "Rounded.", **at(person)))
    master, slave = pty.openpty()
    with noted_process(person.config_dir, "a", "idle"):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "agents", "--watch"],
            env={**person.environment, "TERM": "xterm"},
            cwd=person.home,
            stdin=slave,
            stdout=slave,
        )
        os.close(slave)
        drawn = b""
        try:
            while b"waits for you" not in drawn:
                assert select.select([master], [], [], WAIT_SECONDS)[0], drawn
                drawn += os.read(master, 65536)
            process.send_signal(signal.SIGINT)
            while select.select([master], [], [], WAIT_SECONDS)[0]:
                try:
                    drawn += os.read(master, 65536)
                except OSError:
                    break
            assert process.wait(WAIT_SECONDS) == 0
        finally:
            process.kill()
            process.wait()
            os.close(master)
    assert drawn.startswith(b"\x1b[?1049h\x1b[?25l")
    assert drawn.endswith(b"\x1b[?25h\x1b[?1049l")


def test_what_a_rule_hides_no_row_shows(person: Person) -> None:
    person.works("a", user("the secret plan", **at(person)), bash("cat secret", person))
    with noted_process(person.config_dir, "a", *APPROVAL):
        assert "secret" in person.run("agents", "--all").stdout
        for rule in ("ignore: true", "quote: false"):
            person.config(f"projects: {{{person.repository}: {{{rule}}}}}\n")
            assert "secret" not in person.run("agents", "--all").stdout
            assert "secret" not in person.run("agents", "--all", "--json").stdout
