"""Snapshots of the commands' output for people: their help, and their output on one small machine."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from markdown_snapshot import MarkdownSnapshot
from records import assistant, exchange, tool_result, user
from store_scene import MONDAY, StoreUser, trip
from syrupy.assertion import SnapshotAssertion

from session_memory import __version__
from session_memory.cli import COMMANDS

# By the name of the snapshot: the words of the commands, one a line.
OUTPUTS = {
    "alone": "",
    "sessions": "sessions",
    "read": "read trip --lines 3\nread trip --lines 2 --tools\nread nothing\nread rye",
    "conversations": "conversations\nconversations --since 1h",
    "show": "show 1 --lines 2\nshow 99\nshow trip --lines 1",
    "former_names": "conversations --json\nconversations --since 1h --json\nconversations --status ready\n"
    "conversations --session trip --limit 1\nshow 1 --json\nshow 1 --around 2 --lines 1\n"
    "show trip --full\nshow trip --lines 1 --json\nshow rye",
    "search": "search cherry zebra\nsearch zebra",
    "memories": "memories\nmemories search cherry\nmemories show zz",
    "patterns": "patterns\nerrors ECONNREFUSED\nerrors nothing",
    "costs": "costs",
    "deliveries": "deliveries",
    "process": "process --dry-run\nprocess\nprocess",
    "archive": "archive --all --dry-run\narchive",
    "export": "export nothing\nexport trip\nexport trip --format filtered",
    "forget": "forget 8f3a --dry-run\nforget trip\nforget",
    "config": "config\nconfig scope all\nconfig scope\nconfig scope --unset\nconfig scpoe",
    "ingest": "ingest\ningest --file nowhere.jsonl",
    "dead_ends": "team\nhost\ngraph search x\nserch\nread\nsearch ''\nconversations --project nowhere",
}
VARYING = (
    (r"AGE +TITLE", "AGE    TITLE"),
    (r"\d+[smhdwy] ago", "N ago"),
    (r"just now", "N ago"),
    (r"\d[\d.]* (kB|MB|bytes|s\b)", "N \\1"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "DATE"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (re.escape(__version__), "VERSION"),
    (r"(?m)^[a-z2-7]{10}  ", "MEMORYID    "),
)


@pytest.fixture
def text(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(MarkdownSnapshot)


READERS = (
    "alone",
    "sessions",
    "read",
    "conversations",
    "show",
    "former_names",
    "search",
    "patterns",
    "costs",
    "deliveries",
    "dead_ends",
)


def made(home: Path) -> StoreUser:
    """A trip with a test that fails, and two sessions of one title in two projects."""
    machine = StoreUser(home)
    call = assistant(("Bash", {"command": "npm test"}), at=MONDAY + 300)
    failed = tool_result("Exit code 1\nECONNREFUSED 127.0.0.1:5432", at=MONDAY + 310)
    failed["message"]["content"][0] |= {
        "is_error": True,
        "tool_use_id": call["message"]["content"][0]["id"],
    }
    paths = [
        machine.session("8f3a-trip", *trip(), call, failed, assistant("It fails.", at=MONDAY + 320))
    ]
    for name, project in (("9c01aaaa-bread", "bakery"), ("9c01bbbb-bread", "mill")):
        said = exchange("how long does rye rise?", "Two hours.", at=MONDAY + 60)
        for record in said:
            record["cwd"] = f"/srv/{project}"
        paths.append(
            machine.session(
                name, *said, user("and wheat?", at=MONDAY + 90), project=f"-srv-{project}"
            )
        )
    for hours, path in enumerate(paths, 1):
        os.utime(path, (time.time() - hours * 3600, time.time() - hours * 3600))
    machine.run("ingest")
    return machine


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    return made(tmp_path_factory.mktemp("person") / "user")


def plain(said: str, machine: StoreUser) -> str:
    said = said.replace(str(machine.home), "HOME").replace(machine.home.name, "user")
    for pattern, shown in VARYING:
        said = re.sub(pattern, shown, said)
    return said


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_output_reads_as_its_snapshot_says(
    read_only: StoreUser, tmp_path: Path, text: SnapshotAssertion, name: str
) -> None:
    machine = read_only if name in READERS else made(tmp_path / "user")
    parts = []
    for line in OUTPUTS[name].split("\n"):
        done = machine.run(*line.replace("''", " ").split(" ") if line else ())
        parts.append(f"$ session-memory {line}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
    assert plain("\n".join(parts), machine) == text


def test_the_help_reads_as_its_snapshot_says(read_only: StoreUser, text: SnapshotAssertion) -> None:
    parts = [read_only.run("--help").stdout, read_only.run("help", "all").stdout]
    for name in COMMANDS:
        # Python 3.13 wraps usage otherwise
        usage, _, rest = read_only.run(name, "--help").stdout.partition("\n\n")
        assert usage.startswith(f"usage: session-memory {name}")
        parts.append(f"# {name}\n\n{rest}")
    assert "\n".join(parts) == text
