"""Directories for git: the next run removes only those that a killed process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from session_memory.common.system import git_directories
from session_memory.common.system.git_directories import PREFIX, GitDirectory, remove_leftovers

HOLD = """
import sys
from session_memory.common.system.git_directories import GitDirectory
directory = GitDirectory()
open(directory.path + "/secret", "w").write("uncommitted")
print(directory.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that works in such a directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "TMPDIR": str(place)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_one_in_use_stays_and_that_of_a_killed_process_goes(place: Path) -> None:
    process, path = holder(place)
    remove_leftovers()
    assert (path / "secret").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert path.exists()
    remove_leftovers()
    assert not path.exists()


def test_one_in_use_stays_where_a_lock_is_given_to_everybody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, path = holder(place)
    monkeypatch.setattr(git_directories, "try_lock", lambda descriptor: True)
    remove_leftovers()
    assert (path / "secret").exists()
    process.communicate("done")


def test_those_of_trial_merges_of_earlier_versions_go_too(place: Path) -> None:
    old = place / "session-memory-ab12cd_3"
    (old / "objects/aa").mkdir(parents=True)
    (old / "objects/aa/bb").write_text("raw")
    (old / "HEAD").write_text("ref: refs/heads/none\n")
    remove_leftovers()
    assert not old.exists()


def test_what_is_not_recognisably_ours_stays(place: Path) -> None:
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    for name in (
        "session-memory-tests-ab12",
        "session-memory-ab12cd_4",
        "session-memory-notes",
        "other",
    ):
        (place / name).mkdir()
        (place / name / "kept").write_text("kept")
    (place / "session-memory-ab12cd_4/HEAD").write_text("ref: refs/heads/main\n")
    (place / f"{PREFIX}1-link").symlink_to(elsewhere)
    (place / f"{PREFIX}1-file").write_text("kept")
    if os.geteuid() == 0:
        (place / f"{PREFIX}1-theirs").mkdir()
        os.chown(place / f"{PREFIX}1-theirs", 12345, -1)
    before = sorted(str(path) for path in place.rglob("*"))
    remove_leftovers()
    assert sorted(str(path) for path in place.rglob("*")) == before


def test_links_in_a_leftover_are_not_followed(place: Path) -> None:
    kept = place / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    left = place / f"{PREFIX}1-ab"
    left.mkdir()
    (left / "refs").symlink_to(kept)
    remove_leftovers()
    assert not left.exists()
    assert (kept / "file").exists()


def test_it_is_for_this_user_alone(place: Path) -> None:
    with GitDirectory() as directory:
        assert Path(directory.path).stat().st_mode & 0o777 == 0o700
    assert list(place.iterdir()) == []
