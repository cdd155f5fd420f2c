"""A store that cannot be written: by another process's work, a full device, or permissions.

Questions are answered soon from its content, and say so; commands that ingest fail with the reason.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from records import user
from store_scene import COMMAND, MONDAY, StoreUser, trip

PROMISED_SECONDS = 3.0
START_SECONDS = 12.0  # of Python, on a machine that is busy with other tests
HOLDS_LOCKS = """
import fcntl, os, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO memory_pages VALUES ('', 'x', 'x')")
lock = os.open(sys.argv[2], os.O_CREAT | os.O_RDWR)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""
QUESTIONS = [
    ("search", "cherry"),
    ("show", "1"),
    ("conversations",),
    ("errors", "3 failed"),
    ("patterns",),
    ("memories",),
    ("memories", "search", "Japan"),
    ("health-check",),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    """A user with memories, and a copy of all that is kept; one more session is new."""
    machine = StoreUser(tmp_path_factory.mktemp("unwritable") / "user")
    machine.session("one", *trip())
    assert machine.run("process").returncode == 0
    machine.session("two", user("what is new", at=MONDAY))
    shutil.copytree(machine.home / ".session-memory", machine.home / "made")
    return machine


@pytest.fixture
def machine(made: StoreUser) -> StoreUser:
    for name in (".session-memory", "kept"):
        shutil.rmtree(made.home / name, ignore_errors=True)
    shutil.copytree(made.home / "made", made.home / ".session-memory")
    (made.projects / "-srv-agent" / "three.jsonl").unlink(missing_ok=True)
    made.before = ""  # type: ignore[attr-defined]
    return made


def can_mount() -> bool:
    """Whether a process may have mounts of its own, which end with it."""
    return (
        subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    )


def on_a_device_of_its_own(machine: StoreUser, then: str) -> None:
    """Every command finds what is kept on a small device, on which `then` was run before."""
    memory = machine.home / ".session-memory"
    shutil.copytree(memory, machine.home / "kept", dirs_exist_ok=True)
    machine.before = (  # type: ignore[attr-defined]
        f"mount -t tmpfs -o size=4m tmpfs {memory} && cp -a {machine.home}/kept/. {memory}/ && {{ {then}; }} && "
    )


@contextmanager
def written_by_another(machine: StoreUser) -> Iterator[None]:
    """A process that is writing to the store and to the memories has been stopped."""
    command = [
        sys.executable,
        "-c",
        HOLDS_LOCKS,
        machine.database,
        machine.home / ".session-memory/memories/.lock",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"held\n"
        writer.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            writer.kill()


@contextmanager
def full(machine: StoreUser) -> Iterator[None]:
    """Nothing more fits on the device of the store; where none can be mounted, no process may write a byte."""
    if can_mount():
        on_a_device_of_its_own(
            machine, f"cat /dev/zero > {machine.home}/.session-memory/fill 2> /dev/null; true"
        )
    else:
        machine.before = "ulimit -f 0; "  # type: ignore[attr-defined]
    yield


@contextmanager
def limited(machine: StoreUser) -> Iterator[None]:
    """No process may write a byte to a file, as where a quota is used up."""
    machine.before = "ulimit -f 0; "  # type: ignore[attr-defined]
    yield


@contextmanager
def read_only(machine: StoreUser) -> Iterator[None]:
    """The store's directory may not be written to."""
    memory = machine.home / ".session-memory"
    if can_mount():
        on_a_device_of_its_own(machine, f"mount -o remount,ro {memory}")
        yield
        return
    for path in [memory, *memory.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield
    for path in [memory, *memory.rglob("*")]:
        path.chmod(0o700)


def command_of(machine: StoreUser, *words: str) -> list[str]:
    """A subcommand, after what a case wants to be done before."""
    before = getattr(machine, "before", "")
    own = ["unshare", "-m"] if "mount" in before else []
    return [*own, "sh", "-c", f'{before}exec "$@"', "sh", sys.executable, "-c", COMMAND, *words]


def run(machine: StoreUser, *words: str) -> subprocess.CompletedProcess[str]:
    return machine.run_command(*command_of(machine, *words))


CASES = {
    written_by_another: "another process is writing to ~/.session-memory/store/memory.db",
    full: "no space left on the device with " if can_mount() else "",
    limited: "",  # SQLite says no more than that it was an error
    read_only: ".session-memory/store/",
}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("case", "words"),
    [
        (case, words)
        for case in CASES
        for words in (QUESTIONS if case == written_by_another else QUESTIONS[::3])
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else one.__name__,
)
def test_questions_are_answered_from_what_is_there(machine, case, words):
    expected = machine.run(*words).stdout if words[0] in ("show", "memories") else ""
    machine.session("three", user("what is newer", at=MONDAY))
    with case(machine):
        began = time.monotonic()
        done = run(machine, *words)
        took = time.monotonic() - began
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
    assert took < PROMISED_SECONDS + START_SECONDS
    assert done.stdout.startswith(expected)
    assert done.stdout.strip()
    if words[0] in ("search", "conversations", "errors", "patterns"):
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("session-memory: new transcripts could not be ingested: ")
        assert CASES[case] in done.stderr


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", [full, limited, read_only], ids=lambda case: case.__name__)
@pytest.mark.parametrize("words", [("ingest",), ("watch", "--once"), ("process",)], ids=" ".join)
def test_what_cannot_be_taken_in_is_a_failure_that_says_why(machine, case, words):
    with case(machine):
        done = run(machine, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stdout + done.stderr
    assert CASES[case] in done.stdout + done.stderr
    assert done.stdout + done.stderr
    assert "[Errno" not in done.stdout + done.stderr


@pytest.mark.parametrize("case", [full, limited, read_only], ids=lambda case: case.__name__)
def test_a_store_of_an_earlier_version_that_cannot_be_updated_is_named_with_the_remedy(
    machine, case
):
    with closing(sqlite3.connect(machine.database)) as connection, connection:
        connection.execute("DELETE FROM migrations WHERE name = 'add_advisors'")
    for words in (("search", "cherry"), ("conversations",)):
        with case(machine):
            done = run(machine, *words)
        said = done.stderr.replace("\n ", "")
        assert done.returncode == 1, done.stdout + done.stderr
        assert (
            "store/memory.db: this version must update it first, and it cannot be written" in said
        )
        assert "nothing was lost: " in said


def test_a_store_with_a_log_that_was_left_is_read_where_nothing_can_be_made(machine):
    with written_by_another(machine):
        pass  # killed: its log stays
    for suffix in ("-shm",):
        Path(f"{machine.database}{suffix}").unlink(missing_ok=True)
    with read_only(machine):
        assert "**cherry**" in run(machine, "search", "cherry").stdout


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_tools_answer_from_what_is_there(machine, case):
    asked = {"name": "search_sessions", "arguments": {"query": "cherry blossom"}}
    calls = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18"},
        },
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    with case(machine):
        began = time.monotonic()
        done = subprocess.run(
            command_of(machine, "mcp"),
            input="".join(json.dumps(call) + "\n" for call in calls),
            text=True,
            capture_output=True,
            check=False,
            env=machine.environment,
            cwd=machine.home,
            timeout=60,
        )
        took = time.monotonic() - began
    assert "The cherry blossom is in April" in done.stdout, done.stdout + done.stderr
    assert took < PROMISED_SECONDS + START_SECONDS


def test_where_no_store_can_be_made_a_search_says_why(machine: StoreUser) -> None:
    shutil.rmtree(machine.home / ".session-memory/store")
    with read_only(machine):
        done = run(machine, "search", "cherry")
    assert (done.returncode == 1 and "Read-only file system" in done.stderr) or not can_mount(), (
        done.stderr
    )
