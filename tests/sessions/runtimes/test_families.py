"""A runtime that extends another one states only its differences."""

from __future__ import annotations

from pathlib import Path

from opencode_scene import OpenCodeDatabase

from session_memory.sessions.runtimes.opencode import OpenCode
from session_memory.sessions.runtimes.opencode.backup import OpenCodeBackup
from session_memory.sessions.runtimes.opencode.install import OpenCodeInstall
from session_memory.sessions.runtimes.opencode.records import OpenCodeRecords


class Fork(OpenCode):
    """A fork of OpenCode, with nothing of its own but names."""

    name = "fork"
    TITLE = "Fork"
    USUAL_DIR = ".local/share/fork"
    SOURCE = "fork.db"
    PARTS = ()


def test_a_member_of_a_family_has_the_parts_of_the_runtime_that_it_extends():
    fork = Fork()
    assert [type(part) for part in (fork.records, fork.install, fork.backup)] == [
        OpenCodeRecords,
        OpenCodeInstall,
        OpenCodeBackup,
    ]
    assert fork.install.runtime is fork.backup.runtime is fork


def test_a_member_of_a_family_belongs_to_the_runtime_that_it_extends():
    assert (Fork().family(), OpenCode().family()) == ("opencode", "opencode")


def test_the_events_of_a_member_of_a_family_are_its_own():
    fork = Fork()
    event = fork.install.prompt_event("ses_1", "", "/srv/app", "hi")
    assert (fork.is_own(event, {}), OpenCode().is_own(event, {})) == (True, False)


def test_a_member_of_a_family_reads_and_keeps_its_own_database(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    fork = Fork()
    config_dir = fork.config_dir({"HOME": str(tmp_path)})
    database = OpenCodeDatabase(Path(config_dir))
    session_id = database.exchange("/srv/app", "paint the door", "Done.")
    fork.refresh(config_dir, everything=True)
    (mirror,) = (tmp_path / ".session-memory" / "state" / "fork").rglob("*.jsonl")
    assert mirror.stem == session_id
    assert "paint the door" in mirror.read_text()
    [kept] = fork.backup.sessions(config_dir)
    assert [file.path for file in kept.files] == [f"fork.db/{session_id}.jsonl"]


def test_the_data_directory_of_a_member_of_a_family_has_its_own_name():
    assert Fork().config_dir({"XDG_DATA_HOME": "/data"}) == "/data/fork"
