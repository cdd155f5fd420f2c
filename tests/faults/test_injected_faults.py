"""A write fails anywhere in the home: nothing is lost or half-written, and the error is clear.

The C library's calls fail (`inject.c`), so SQLite's writes fail too. Each command runs once with a
failing call, in a process that is forked from one with the library, and then once more. The calls
are a random sample: 3 for each error, 15 with `--all`.
"""

from __future__ import annotations

import errno
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from fork_server import run_forked
from hooks_scene import PlainUser, run, told
from records import append, exchange
from share import some
from store_scene import MONDAY, StoreUser, trip

from bench.scratch import remove_tree

SOURCE = Path(__file__).parent / "inject.c"
SAMPLE = 3  # calls that fail, for each error; 15 with --all
SECRET = "the aubergine plan"


@pytest.fixture(scope="session")
def injector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled injector."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or not compiler:
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("inject") / "inject.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Work(NamedTuple):
    """A trial: the home before it, the command, the final content, and files that stay whole."""

    set_up: Callable[[Path], object]
    words: tuple[str, ...]
    result: Callable[[Path], object]
    whole: str


def run_with(
    injector: Path, home: Path, words: Sequence[str], **fault: str
) -> subprocess.CompletedProcess[bytes]:
    environ = {**StoreUser(home).environment, "LD_PRELOAD": str(injector), **fault}
    return run_forked(words, environ, home, preload=str(injector))


def copied(template: Path, home: Path) -> None:
    """Put a home back as it was."""
    remove_tree(home)
    shutil.copytree(template, home, symlinks=True)


def sessions(home: Path) -> StoreUser:
    """Two sessions that are not in the store yet."""
    home.mkdir()
    user = StoreUser(home)
    user.session("trip", *trip())
    user.session(
        "rule",
        *exchange("From now on, always run the linter before you commit.", "I will.", at=MONDAY),
    )
    user.session("plan", *exchange(f"let us talk of {SECRET}", f"{SECRET} is good", at=MONDAY))
    user.config("upkeep: off\n")
    return user


def stored(home: Path) -> StoreUser:
    user = sessions(home)
    for words in (["ingest"], ["archive", "--all"], ["process"]):
        assert user.run(*words).returncode == 0
    user.session(
        "rule", *exchange("From now on, never push to main.", "I will not.", at=MONDAY + 60)
    )
    return user


def texts(home: Path) -> object:
    """What the store, which has to be whole, has of each session."""
    database = StoreUser(home).database
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return sorted(connection.execute("SELECT session_id, role, text FROM entries"))


def files(pattern: str) -> Callable[[Path], dict[str, str]]:
    """The files of a pattern by name, without the times of this run."""

    def read(home: Path) -> dict[str, str]:
        return {
            str(path.relative_to(home)): re.sub(
                r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?|(?<=Archived: ).*",
                "TIME",
                path.read_text(),
            )
            for path in sorted(home.glob(pattern))
        }

    return read


def nowhere(home: Path) -> object:
    """Files of ours that still have the forgotten text."""
    found = [path for path in (home / ".session-memory").rglob("*") if path.is_file()]
    return [str(path.relative_to(home)) for path in found if SECRET.encode() in path.read_bytes()]


def let_time_pass(home: Path) -> None:
    """Let what failed be due again."""
    queue = StoreUser(home).queue
    if queue.exists():
        with closing(sqlite3.connect(queue, isolation_level=None)) as connection:
            if connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'memory_work'"
            ).fetchone():
                connection.execute("UPDATE memory_work SET next_try = 0")


MARKDOWN = "**/.session-memory/**/*.md"
SETTINGS = ".session-memory/config.yaml"
WORKS = {
    "ingest": Work(sessions, ("ingest",), texts, SETTINGS),
    "archive": Work(sessions, ("archive", "--all"), files(MARKDOWN), MARKDOWN),
    "process": Work(sessions, ("process",), files(".session-memory/memories/**/*.md"), MARKDOWN),
    "more": Work(stored, ("process",), files(".session-memory/memories/**/*.md"), MARKDOWN),
    "config": Work(stored, ("config", "collisions", "ask"), files(SETTINGS), SETTINGS),
    "forget": Work(stored, ("forget", "plan", "--yes"), nowhere, MARKDOWN),
}


def faults(calls: list[str], most: int) -> Iterator[tuple[int, int, str]]:
    """Yield calls that fail, at most so many for each error: the number, the error, and how to name them."""
    for number in (errno.EIO, errno.ENOSPC):
        for at in sorted(random.sample(range(1, len(calls) + 1), min(most, len(calls)))):
            yield at, number, f"{errno.errorcode[number]} at {at} of {len(calls)}, {calls[at - 1]}"


class Trial:
    """A home that is put back before each run."""

    def __init__(self, work: Work, directory: Path, injector: Path) -> None:
        self.work = work
        self.home = directory / "home"
        self.injector = injector
        self.log = directory / "calls"
        self.template = directory / "template"
        work.set_up(self.home)
        self.before = files(work.whole)(self.home)
        shutil.copytree(self.home, self.template, symlinks=True)
        assert self.run(0, errno.EIO).returncode == 0
        self.calls = self.log.read_text().splitlines()
        self.after = files(work.whole)(self.home)
        self.expected = work.result(self.home)

    def run(self, at: int, number: int) -> subprocess.CompletedProcess[bytes]:
        return run_with(
            self.injector,
            self.home,
            self.work.words,
            FAULT_BELOW=str(self.home / ".session-memory"),
            FAULT_AT=str(at),
            FAULT_ERRNO=str(number),
            **({} if at else {"FAULT_LOG": str(self.log)}),
        )

    def problems(self, at: int, number: int, where: str) -> list[str]:
        """What is wrong after this fault, and after another run."""
        copied(self.template, self.home)
        done = self.run(at, number)
        found = []
        if b"Traceback" in done.stderr or done.returncode not in (0, 1, 2):
            found.append(f"exit {done.returncode}: {done.stderr[-300:]}")
        for name, text in files(self.work.whole)(self.home).items():
            if text not in (self.before.get(name), self.after.get(name)):
                found.append(f"half-written: {name}: {text[-100:]!r}")
        let_time_pass(self.home)
        again = StoreUser(self.home).run(*self.work.words)
        result = self.work.result(self.home)
        if result != self.expected:
            found.append(
                f"after another run ({again.returncode}: {(again.stdout + again.stderr)[-400:]}): {result!r:.300}"
            )
        return [f"{where}: {problem}" for problem in found]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", WORKS)
@pytest.mark.timeout(3600)
def test_a_write_that_fails_loses_nothing(name: str, injector: Path, tmp_path: Path) -> None:
    trial = Trial(WORKS[name], tmp_path, injector)
    assert len(trial.calls) > 3
    chosen = faults(trial.calls, some(15, SAMPLE))
    found = [problem for fault in chosen for problem in trial.problems(*fault)]
    assert not found, "\n".join([f"{len(found)} problems", *found[:20]])


class Hooks:
    """A session whose prompts and calls run hooks, and another one that it is told of."""

    def __init__(self, directory: Path, injector: Path) -> None:
        self.user = PlainUser(directory / "home")
        self.user.session(*exchange("pack the tamarind", "hi"))
        self.template = directory / "template"
        self.fault = {"LD_PRELOAD": str(injector), "FAULT_BELOW": str(self.user.place)}
        shutil.copytree(self.user.root, self.template, symlinks=True)

    def prompt(self, **fault: str) -> str:
        """What a prompt is told."""
        out = run(self.user.event(), self.user.root, is_process=True, **fault)
        return told(out) if out else ""

    def compacts(self, **fault: str) -> None:
        """Say something, and compact."""
        path = self.user.project_dir / f"{self.user.session_id}.jsonl"
        append(path, *exchange("keep the quince", "It is kept."))
        event = {**self.user.event(), "hook_event_name": "PreCompact"}
        run(event, self.user.root, script="pre_compact", is_process=True, **fault)

    def archives(self) -> list[str]:
        return [path.read_text() for path in self.user.place.rglob("*.md")]


@pytest.mark.timeout(3600)
def test_a_write_that_fails_costs_no_update_and_breaks_no_prompt(
    injector: Path, tmp_path: Path
) -> None:
    hooks = Hooks(tmp_path, injector)
    log = tmp_path / "calls"
    assert "tamarind" in hooks.prompt(**hooks.fault, FAULT_LOG=str(log))
    calls = log.read_text().splitlines()
    assert len(calls) > 3
    lost = []
    for at, number, where in faults(calls, some(15, SAMPLE)):
        copied(hooks.template, hooks.user.root)
        texts = [
            hooks.prompt(**hooks.fault, FAULT_AT=str(at), FAULT_ERRNO=str(number)),
            hooks.prompt(),
        ]
        if not any("tamarind" in text for text in texts) or hooks.prompt():
            lost.append(f"{where}: {texts}")
    assert not lost, "\n".join(lost)


@pytest.mark.timeout(3600)
def test_a_write_that_fails_leaves_no_half_archive(injector: Path, tmp_path: Path) -> None:
    hooks = Hooks(tmp_path, injector)
    log = tmp_path / "calls"
    hooks.compacts(**hooks.fault, FAULT_LOG=str(log))
    [whole] = hooks.archives()
    calls = log.read_text().splitlines()
    wrong = []
    for at, number, where in faults(calls, some(15, SAMPLE)):
        copied(hooks.template, hooks.user.root)
        hooks.compacts(**hooks.fault, FAULT_AT=str(at), FAULT_ERRNO=str(number))
        half = [text for text in hooks.archives() if "It is kept." not in text]
        hooks.compacts()
        if half or [text.count("It is kept.") for text in hooks.archives()] != [2]:
            wrong.append(f"{where}: {half}")
    assert not wrong, "\n".join(wrong)
    assert whole.count("It is kept.") == 1


NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", NO_LOCKS, ids=lambda number: errno.errorcode[number])
def test_a_file_system_without_locks_stops_no_prompt_and_no_command(
    injector: Path, tmp_path: Path, number: int
) -> None:
    fault = {"LD_PRELOAD": str(injector), "FAULT_FLOCK": str(number)}
    user = PlainUser(tmp_path / "plain")
    user.session(*exchange("pack the tamarind", "hi"))
    assert "tamarind" in told(run(user.event(), user.root, is_process=True, **fault))
    assert not run(user.event(), user.root, is_process=True, **fault)
    home = tmp_path / "home"
    sessions(home)
    words = [
        ["ingest"],
        ["archive", "--all"],
        ["process"],
        ["search", "linter"],
        ["watch", "--once"],
        ["status"],
    ]
    done = [(one, run_with(injector, home, one, FAULT_FLOCK=str(number))) for one in words]
    assert [(one, result.stderr) for one, result in done if result.returncode] == []
    host = str(home / "host")
    init, asked = ["host", "init", host, "main"], ["host", "status", "--at", host, "--json"]
    assert run_with(injector, home, init, FAULT_FLOCK=str(number)).returncode == 0
    status = run_with(injector, home, asked, FAULT_FLOCK=str(number))
    assert (status.returncode, json.loads(status.stdout)["is_running"]) == (0, False)
