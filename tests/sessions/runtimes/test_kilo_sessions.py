"""Kilo's own sessions, read by OpenCode's decoder, and the plugin that says in which of the two it runs."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from opencode_scene import OpenCodeDatabase, text
from own_process import ROOT

from session_memory.common.system import files as system
from session_memory.sessions.runtimes.base import transcripts_in
from session_memory.sessions.runtimes.records import MESSAGES, RESULTS, CallResult
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.reader import TranscriptReader

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures" / "kilo"
TABLES = ("project", "session", "message", "part")
KILO = runtime("kilo")
TURN = [
    ("user", "Please change alpha to gamma in notes.txt"),
    ("assistant", "Reading."),
    ("assistant", "read"),
    ("assistant", "edit"),
    ("assistant", "bash"),
    ("assistant", "All done."),
]


@pytest.fixture
def mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The mirrors of the captured sessions by the end of their ids: tools, a fork of them, and an
    answer that was stopped."""
    if not CAPTURES.is_dir():
        pytest.skip("there are no captures beside the repository")
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    data_dir = tmp_path / ".local" / "share" / "kilo"
    data_dir.mkdir(parents=True)
    with closing(sqlite3.connect(data_dir / "kilo.db")) as connection, connection:
        connection.executescript((CAPTURES / "schema.sql").read_text())
        for table in TABLES:
            for row in json.loads((CAPTURES / "3-interrupted" / f"{table}.json").read_text()):
                places = ", ".join("?" * len(row))
                columns = ", ".join(f'"{name}"' for name in row)
                connection.execute(
                    f"INSERT INTO {table} ({columns}) VALUES ({places})", [*row.values()]
                )
    KILO.refresh(str(data_dir), everything=True)
    found = (tmp_path / ".session-memory" / "state" / "kilo").glob("*/*.jsonl")
    return {path.stem[-5:]: path for path in found}


def read(path: Path) -> tuple[list[Entry], list[CallResult]]:
    """The entries of a mirror, and the results of their calls."""
    first = path.read_bytes().partition(b"\n")[0] + b"\n"
    with path.open("rb") as file:
        found = [one for one in TranscriptReader(KILO, first).conversation(file.fileno()) if one]
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    events = [event for line in lines for event in KILO.records.events(line, 0, MESSAGES | RESULTS)]
    return found, [event for event in events if isinstance(event, CallResult)]


def said(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(one.role, one.text or one.tools[0].name) for one in entries]


def test_a_session_with_tools_and_a_stopped_answer_is_read(mirrors: dict[str, Path]) -> None:
    entries, results = read(mirrors["kYHFK"])
    assert said(entries) == [*TURN, ("user", "Question to be stopped")]
    assert [
        (use.kind, use.argument.rpartition("/")[2]) for one in entries for use in one.tools
    ] == [
        ("read", "notes.txt"),
        ("edit", "notes.txt"),
        ("command", "cat notes.txt; false"),
    ]
    assert [one.has_failed for one in results] == [False, False, True]
    assert {one.cwd for one in entries} == {"/srv/lab/h/kilo/proj"}


def test_what_a_fork_copied_counts_once(mirrors: dict[str, Path]) -> None:
    entries, _ = read(mirrors["6C5Bo"])
    assert said(entries) == [*TURN, ("user", "Question in the fork")]
    original = [one.id for one in read(mirrors["kYHFK"])[0]]
    assert [one.is_copy for one in entries] == [True] * len(TURN) + [False]
    assert [one.id for one in entries[: len(TURN)]] == original[: len(TURN)]


@pytest.mark.parametrize(
    ("file", "kilo_pid", "name"),
    [
        ("kilo", "", "kilo"),
        ("opencode", "", "opencode"),
        ("opencode", "own", "kilo"),
        ("opencode", "1", "opencode"),  # OpenCode in a shell of Kilo
    ],
)
def test_a_plugin_says_in_which_program_it_runs(file: str, kilo_pid: str, name: str) -> None:
    """Kilo (7.7.7) loads the plugins that a project's opencode.json names."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    script = f"""
        if ({json.dumps(kilo_pid)}) process.env.KILO_PID = {json.dumps(kilo_pid)} === "own" ? process.pid : 1;
        const {{ SessionMemory }} = await import({json.dumps(str(ROOT / "hooks" / file / "index.js"))});
        const output = {{ env: {{}} }};
        await (await SessionMemory({{ directory: "/" }}))["shell.env"]({{ sessionID: "ses_1" }}, output);
        console.log(JSON.stringify(output.env));
    """
    command = [node, "--input-type=module", "-e", script]
    environ = {"PATH": os.defpath}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {f"{name.upper()}_SESSION_ID": "ses_1"}


def test_kilo_and_opencode_in_one_data_directory_each_have_only_their_own_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    environ = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    names = ("opencode", "kilo")
    asked = {name: f"What does {name} do?" for name in names}
    places = {name: runtime(name).config_dir(environ) for name in names}
    for number, name in enumerate(names):
        database = OpenCodeDatabase(Path(places[name]), last=100 * number)
        prompt = database.user(session := database.session("/srv/app"), asked[name])
        database.assistant(session, prompt, text("It works."))
    for name in names:
        runtime(name).refresh(places[name], everything=True)
    for name in names:
        [folder] = runtime(name).folders_below(places[name], "/srv/app")
        [path] = transcripts_in(folder)
        assert said(read(Path(path))[0]) == [("user", asked[name]), ("assistant", "It works.")]
