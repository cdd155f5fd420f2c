"""A user with transcripts and a store, and the commands around it as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from records import assistant, exchange, user, write

from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.values import Filter

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "import sys; from session_memory.cli import main; sys.exit(main())"
WAIT_SECONDS = 60
MONDAY = 1_790_000_000.0


class StoreUser:
    """`home` is HOME; `projects` is where the transcripts of Claude Code lie."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.projects = home / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.database = home / ".session-memory" / "store" / "memory.db"

    def session(self, name: str, *records: dict[str, Any], project: str = "-srv-agent") -> Path:
        """A transcript that was last written an hour ago."""
        path = write(self.projects / project / f"{name}.jsonl", *records)
        then = time.time() - 3600
        os.utime(path, (then, then))
        return path

    def config(self, text: str) -> None:
        path = self.home / ".session-memory" / "config.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home), "PATH": os.defpath, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
        }  # fmt: skip

    def run(self, *words: object, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs a subcommand to its end."""
        return self.run_command(sys.executable, "-c", COMMAND, *map(str, words), cwd=cwd, **environ)

    def run_command(self, *command: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """Runs any command to its end."""
        return subprocess.run(
            command, capture_output=True, text=True, cwd=cwd or self.home, env={**self.environment, **environ},
            stdin=subprocess.DEVNULL, timeout=WAIT_SECONDS, check=False,
        )  # fmt: skip

    def result(self, *words: object, **options: Any) -> Any:
        """The JSON of a command that has to succeed."""
        done = self.run(*words, "--json", **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def stored(self) -> list[str]:
        """All that is stored: texts, conversation by conversation."""
        if not self.database.exists():
            return []
        store = SqliteStore(str(self.database))
        try:
            talks = store.conversations(Filter(limit=1000))
            return [entry.text for talk in sorted(talks, key=lambda one: one.id) for entry in store.entries(talk.id)]
        finally:
            store.close()

    def statuses(self) -> list[str]:
        """The status of each file that the store knows."""
        store = SqliteStore(str(self.database))
        try:
            return [state.status for _, state in sorted(store.file_states("").items())]
        finally:
            store.close()

    @contextmanager
    def watching(self, *words: str) -> Iterator[Watcher]:
        """`session-memory watch`, stopped at the end if it still runs."""
        log = self.home / "watch.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "watch", *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                cwd=self.home, env=self.environment,
            )  # fmt: skip
        try:
            yield Watcher(process, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


class Watcher:
    """A watcher at work, and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait_for(self, is_so: Callable[[], bool], what: str) -> None:
        """Waits until `is_so`; fails if it takes too long, or the watcher ends before."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_so():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.said}"
            assert time.monotonic() < deadline, f"not {what} within {WAIT_SECONDS} s:\n{self.said}"
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)


def trip() -> list[dict[str, Any]]:
    """A conversation with tool uses, one of which failed."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "npm test"}}
    failed = {"tool_use_id": "toolu_1", "type": "tool_result", "is_error": True, "content": "Exit code 1\n3 failed"}
    return [
        user("plan a trip to <b>Japan</b>", at=MONDAY),
        assistant("Gladly. The cherry blossom is in April.", at=MONDAY + 5, message_id="m1"),
        assistant(call, at=MONDAY + 6, message_id="m1"),
        user([failed], at=MONDAY + 9),
        assistant("The tests fail.", at=MONDAY + 10),
        *exchange("never mind", "As you like.", at=MONDAY + 20),
    ]
