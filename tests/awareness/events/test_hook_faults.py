"""The prompt hook with something broken: the prompt goes through quietly, and nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time

import pytest
from hooks_scene import ROOT, PlainUser, run, told
from opencode_scene import OpenCodeDatabase
from records import append, exchange, new_id, write

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


class TestFailsOpen:
    """Exit code 0, nothing on stdout, one line in the log."""

    def test_on_bad_stdin(self, plain):
        ids = (b'{"session_id": 7}', b'{"session_id": "../x"}')
        for stdin in (b"", b"{", b"[]", b"null", b"\xff\xfe", *ids, b"[" * 100_000):
            assert run(stdin, plain.root) == b""
            assert len(plain.log()) == 1, stdin[:20]
            (plain.state_dir / "hook.log").unlink()

    def test_on_a_missing_home(self, tmp_path):
        event = PlainUser(tmp_path / "a").event(
            transcript_path=str(tmp_path / "gone/projects/x/y.jsonl")
        )
        assert run(event, tmp_path / "gone") == b""
        assert not (tmp_path / "gone").exists()

    def test_without_a_home_variable(self, plain):
        plain.session(*exchange("hello", "hi"))
        done = subprocess.run(
            [sys.executable, "-I", "-S", ROOT / "hooks/user_prompt_submit.py"],
            input=json.dumps(plain.event()).encode(),
            capture_output=True,
            check=True,
            # else it would write into the real home
            env={"SESSION_MEMORY_DIR": str(plain.root / ".session-memory")},
        )
        assert "hello" in told(done.stdout)

    def test_on_a_corrupt_cursor_file(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        plain.run()
        (plain.state_dir / "cursors" / f"{plain.session_id}.json").write_text("{broken")
        time.sleep(0.02)  # more than the grain of the file system's clock
        append(path, *exchange("more", "words"))
        assert '"more"; last: "words"' in told(plain.run())
        assert plain.run() == b""
        assert len(plain.log()) == 1
        append(path, *exchange("later", "on"))
        assert "later" in told(plain.run())

    def test_on_a_locked_cursor_file(self, plain):
        import fcntl

        plain.session(*exchange("hello", "hi"))
        lock = plain.state_dir / "cursors" / f"{plain.session_id}.json.lock"
        lock.parent.mkdir(parents=True)
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert plain.run() == b""
        assert len(plain.log()) == 1
        assert "hello" in told(plain.run())

    def test_on_a_full_disk(self, plain):
        plain.session(*exchange("hello", "hi"))
        (plain.state_dir / "cursors").mkdir(parents=True)
        (plain.state_dir / "hook.log").write_text("")

        def no_space():
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        assert run(plain.event(), plain.root, preexec_fn=no_space) == b""
        assert len(plain.log()) == 1
        assert "hello" in told(plain.run())

    def test_on_a_state_directory_that_is_a_file(self, plain):
        plain.session(*exchange("hello", "hi"))
        plain.place.write_text("in the way")
        assert plain.run() == b""

    @pytest.mark.skipif(IS_ROOT, reason="permissions do not bind root")
    def test_on_a_read_only_home(self, plain):
        plain.session(*exchange("hello", "hi"))
        plain.root.chmod(0o500)
        try:
            assert plain.run() == b""
        finally:
            plain.root.chmod(0o700)

    def test_on_a_fifo_in_place_of_a_transcript(self, plain):
        os.mkfifo(plain.project_dir / f"{new_id()}.jsonl")
        assert plain.run() == b""
        assert "not a regular file" in plain.log()[0]

    def test_on_a_fifo_in_place_of_a_file_of_the_database_of_opencode(self, plain):
        data_dir = plain.root / ".local/share/opencode"
        OpenCodeDatabase(data_dir).exchange(plain.root, "one", "two")
        for place in ("opencode.db-wal", "opencode.db-journal", "opencode.db"):
            plain.session(*exchange(f"hello {place}", "hi"))
            (data_dir / place).unlink(missing_ok=True)
            os.mkfifo(data_dir / place)
            assert f"hello {place}" in told(plain.run())
            (data_dir / place).unlink()

    def test_on_a_directory_in_place_of_a_transcript(self, plain):
        (plain.project_dir / f"{new_id()}.jsonl").mkdir()
        assert plain.run() == b""
        assert len(plain.log()) == 1

    def test_on_a_link_in_place_of_a_transcript(self, plain, tmp_path):
        secret = write(tmp_path / "secret.jsonl", *exchange("not yours", "no"))
        (plain.project_dir / f"{new_id()}.jsonl").symlink_to(secret)
        assert plain.run() == b""

    def test_on_a_line_of_100_megabytes(self, plain):
        path = plain.session()
        with path.open("wb") as file:
            file.truncate(100 * 1024 * 1024)
        assert plain.run() == b""
        assert len(plain.log()) == 1

    def test_on_unreadable_records_the_rest_is_told_and_they_are_counted(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        with path.open("ab") as file:
            file.write(b'{"type":"user","mess\n')
        assert "hello" in told(plain.run())
        assert "1 records could not be read" in plain.log()[0]

    def test_on_a_closed_stdout_nothing_counts_as_told(self, plain):
        plain.session(*exchange("hello", "hi"))
        subprocess.run(
            ["/bin/sh", "-c", f"'{sys.executable}' -I -S '{ROOT}/hooks/user_prompt_submit.py' >&-"],
            input=json.dumps(plain.event()).encode(),
            env={"HOME": str(plain.root)},
            check=True,
            stderr=subprocess.DEVNULL,
        )
        assert "hello" in told(plain.run())

    def test_on_a_config_whose_rules_are_not_known(self, plain):
        """What it excludes is not known, so nothing is told."""
        plain.session(*exchange("hello", "hi"))
        for config in ("a: b: c\n", "sessions: 3\n"):
            plain.config(config)
            assert plain.run() == b"", config
        plain.config("")
        assert "hello" in told(plain.run())

    def test_the_log_does_not_grow_without_bound(self, plain):
        plain.state_dir.mkdir(parents=True)
        log = plain.state_dir / "hook.log"
        log.write_text("x" * 70_000)
        run(b"{", plain.root)
        run(b"{", plain.root)
        assert log.stat().st_size < 1000
        assert (plain.state_dir / "hook.log.1").stat().st_size > 70_000


@pytest.mark.parametrize("event", [b"{}", b"{"])
def test_every_hook_ends_well_and_in_silence_if_a_part_of_the_program_is_missing(tmp_path, event):
    for name in ("hooks", "session_memory"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "session_memory/common/text/secrets/rules.tsv").unlink()
    ends = {}
    for hook in sorted((tmp_path / "hooks").glob("*.py")):
        done = subprocess.run(
            [sys.executable, "-I", "-S", hook],
            input=event,
            capture_output=True,
            check=False,
            env={"HOME": str(tmp_path)},
        )
        ends[hook.name] = (done.returncode, done.stdout, done.stderr)
    assert len(ends) > 10
    assert {name: end for name, end in ends.items() if end != (0, b"", b"")} == {}


def test_a_broken_installation_does_not_break_the_prompt(tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "user_prompt_submit.py").write_bytes(
        (ROOT / "hooks/user_prompt_submit.py").read_bytes()
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", hooks / "user_prompt_submit.py"],
        input=b"{}",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
