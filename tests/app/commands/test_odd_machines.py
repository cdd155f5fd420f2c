"""Commands and hooks on machines without a home directory, and among symlinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hooks_scene import PlainUser, run, told
from records import exchange, new_id
from store_scene import StoreUser

ROOT = Path(__file__).resolve().parents[3]
# A user that the system does not know, as a container may run.
UNKNOWN = "import pwd\ndef nobody(uid): raise KeyError(uid)\npwd.getpwuid = nobody\n"
MAIN = (
    UNKNOWN
    + "import sys; from session_memory.cli import main; print([main(line.split()) for line in sys.argv[1:]])"
)
NO_HOME_SET = {"PATH": os.defpath}
NO_HOME = "session-memory: no home directory is known\n"


def without_home(directory: Path, *lines: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run these commands, one after the other in one process; it prints their exit codes."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *lines],
        cwd=directory,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        env={**NO_HOME_SET, "PYTHONPATH": str(ROOT), **environ},
        stdin=subprocess.DEVNULL,
    )


def test_without_a_home_directory_a_command_says_so_and_makes_none(tmp_path: Path) -> None:
    lines = [
        "status",
        "search x",
        "sessions",
        "ingest",
        "archive --all",
        "config",
        "costs",
        "doctor",
        "install --dry-run",
    ]
    done = without_home(tmp_path, *lines)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, str([1] * len(lines))), (
        done.stderr
    )
    assert done.stderr.count(NO_HOME) == len(lines)
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_without_a_home_directory_a_prompt_goes_on_and_makes_none(tmp_path: Path) -> None:
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": new_id(),
        "prompt": "hi",
        "cwd": str(tmp_path),
        "transcript_path": str(tmp_path / "gone.jsonl"),
    }
    code = (
        UNKNOWN
        + f"import runpy; runpy.run_path({str(ROOT / 'hooks' / 'user_prompt_submit.py')!r}, None, '__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(event),
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
        env=NO_HOME_SET,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(tmp_path) == []


def test_without_a_home_directory_the_place_that_the_user_names_holds_everything(
    tmp_path: Path,
) -> None:
    place = tmp_path / "place"
    done = without_home(tmp_path, "ingest", SESSION_MEMORY_DIR=str(place))
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "store" / "memory.db").is_file()
    assert os.listdir(tmp_path) == ["place"]


def odd_transcripts(directory: Path, elsewhere: Path) -> None:
    """Links and other things under names of transcripts."""
    for target in (elsewhere, "/dev/null", "nowhere", ".", ".."):
        (directory / f"{new_id()}.jsonl").symlink_to(target)
    itself = directory / f"{new_id()}.jsonl"
    itself.symlink_to(itself.name)
    (directory / f"{new_id()}.jsonl").mkdir()
    os.mkfifo(directory / f"{new_id()}.jsonl")


def test_links_among_the_transcripts_are_no_sessions_to_any_command(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    user = StoreUser(tmp_path / "home")
    path = user.session("trip", *exchange("pack the tamarind", "done"))
    elsewhere = tmp_path / "else.jsonl"
    elsewhere.write_bytes(path.read_bytes().replace(b"tamarind", b"aubergine"))
    odd_transcripts(path.parent, elsewhere)
    before = elsewhere.stat()
    for words in (
        ["ingest"],
        ["archive", "--all", "--json"],
        ["sessions", "--json"],
        ["search", "tamarind"],
    ):
        done = user.run(*words)
        assert (done.returncode, "aubergine" in done.stdout) == (0, False), done.stderr
        if "--json" in words:
            assert len(json.loads(done.stdout)["sessions"]) == 1
    assert user.run("search", "aubergine").returncode == 1
    assert (elsewhere.stat().st_mtime_ns, elsewhere.stat().st_ino) == (
        before.st_mtime_ns,
        before.st_ino,
    )


def test_linked_directories_are_followed_and_links_to_files_are_logged_once(tmp_path: Path) -> None:
    user = PlainUser(tmp_path / "home")
    path = user.session(*exchange("pack the tamarind", "hi"))
    (tmp_path / "else.jsonl").write_bytes(path.read_bytes().replace(b"tamarind", b"aubergine"))
    odd_transcripts(user.project_dir, tmp_path / "else.jsonl")
    moved = tmp_path / "moved"
    user.project_dir.rename(moved)
    user.project_dir.symlink_to(moved)
    text = told(run(user.event(), user.root))
    assert "tamarind" in text
    assert "aubergine" not in text
    size = (user.place / "state" / "hook.log").stat().st_size
    for _ in range(9):
        run(user.event(), user.root)
    assert (user.place / "state" / "hook.log").stat().st_size == size
