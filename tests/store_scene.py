"""The setup for tests of the store.

It has a store beside transcripts (`Scene`), entries added by hand (`put`), and a user with
transcripts who runs the commands (`StoreUser`).
"""

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

from fork_server import Started
from own_process import ROOT as ROOT
from own_process import plain_environment, run_here
from records import append, assistant, exchange, lines, user, write

from session_memory.history.store.ingest.ingestion import Ingestion, IngestReport
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.ingest.values import (
    Batch,
    FileState,
    NewEntry,
    NewTool,
    ToolOutcome,
)
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Conversation, Filter, StoredEntry, key_of

COMMAND = "import sys; from session_memory.cli import main; sys.exit(main())"
WAIT_SECONDS = 150
MONDAY = 1_790_000_000.0
PROJECT = "-srv-agent"
EVERYTHING = Filter(limit=1000)
MINUTE = 60_000
START = 1_780_000_000_000


class Scene:
    """`root` holds the transcripts of one project, `store` takes them in."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.root = path / "projects"
        (self.root / PROJECT).mkdir(parents=True)
        self.database = path / "store" / "memory.db"
        self.options = options
        self.store = self.open()

    @property
    def told(self) -> Any:
        """The engine that is read from, with all that was written."""
        return self.store

    def open(self) -> SqliteStore:
        return SqliteStore(str(self.database), **self.options)

    def file(self, session: str) -> Path:
        return self.root / PROJECT / f"{session}.jsonl"

    def write(self, session: str, *records: dict[str, Any]) -> Path:
        path = self.file(session)
        path.write_bytes(lines(*records))
        return path

    def append(self, session: str, *records: dict[str, Any]) -> None:
        append(self.file(session), *records)

    def ingest(
        self, root: Path | None = None, home: str = "", *, is_backup: bool = False, **options: Any
    ) -> IngestReport:
        ingestion = Ingestion(self.store, home, **options)
        ingestion.scan(SourceDirectory(str(root or self.root), home, is_backup=is_backup))
        return ingestion.report

    @contextmanager
    def seen_by(self, *homes: str) -> Iterator[None]:
        """The engine that is read from shows only these homes until the block ends."""
        self.told.visible = homes
        yield
        self.told.visible = None

    def conversations(self, **wanted: Any) -> list[Conversation]:
        """The oldest first."""
        return self.told.conversations(EVERYTHING._replace(**wanted))[::-1]

    def items(self, conversation: Conversation) -> list[StoredEntry]:
        return list(self.told.entries(conversation.id))

    def texts(self, **wanted: Any) -> list[str]:
        """What was said, conversation by conversation; a tool use as its name and argument."""
        return [
            f"{item.tool} {item.text}" if item.tool else item.text
            for conversation in self.conversations(**wanted)
            for item in self.items(conversation)
        ]


def state(name: str = "a", home: str = "", **fields: object) -> FileState:
    known = FileState(
        home, f"-srv-agent/{name}.jsonl", "/root", "claude-code", name, cwd="/srv/agent"
    )
    return known._replace(**fields)


def said(
    text: str,
    minute: float = 0,
    role: str = "user",
    key: str = "",
    message: int = 0,
    **fields: object,
) -> NewEntry:
    when = START + round(minute * MINUTE)
    return NewEntry(key_of(key or text), message, 0, role, text, when, "/srv/agent")._replace(
        **fields
    )


def tool(argument: str, ended: ToolOutcome | None = None, call: str = "") -> NewTool:
    return NewTool(
        key_of(f"tool {argument}"), key_of(call or argument), "Bash", "command", argument, ended
    )


def put(
    scene: Scene,
    before: FileState | None,
    after: FileState,
    *entries: NewEntry,
    outcomes: object = (),
) -> FileState:
    [stored] = scene.store.write([Batch(before, after, list(entries), list(outcomes))])
    assert stored is not None
    return stored


class StoreUser:
    """`home` is HOME; `projects` is where the transcripts of Claude Code lie."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.projects = home / ".claude" / "projects"
        self.projects.mkdir(parents=True, exist_ok=True)
        self.database = home / ".session-memory" / "store" / "memory.db"
        self.queue = home / ".session-memory" / "store" / "memory.db.queue"
        self._last_written = time.time() - 3600

    def session(self, name: str, *records: dict[str, Any], project: str = "-srv-agent") -> Path:
        """A transcript that was last written about an hour ago, .1 s after the one before.

        So ingests always meet the transcripts in the order in which a test writes them."""
        path = write(self.projects / project / f"{name}.jsonl", *records)
        self._last_written += 0.1
        os.utime(path, (self._last_written, self._last_written))
        return path

    def config(self, text: str) -> None:
        path = self.home / ".session-memory" / "config.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        return {**plain_environment(self.home), "PYTHONUNBUFFERED": "1"}

    def run(
        self, *words: object, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a subcommand to its end, in this process."""
        return run_here([*map(str, words)], {**self.environment, **environ}, cwd or self.home)

    def run_process(
        self, *words: object, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a subcommand to its end in a process of its own."""
        return self.run_command(sys.executable, "-c", COMMAND, *map(str, words), cwd=cwd, **environ)

    def run_command(
        self, *command: str, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs any command to its end."""
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=cwd or self.home,
            env={**self.environment, **environ},
            stdin=subprocess.DEVNULL,
            timeout=WAIT_SECONDS,
            check=False,
        )

    def result(self, *words: object, code: int = 0, **options: Any) -> Any:
        """The JSON of a command that has to succeed, or to end with another exit `code`."""
        done = self.run(*words, "--json", **options)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def stored(self) -> list[str]:
        """All that is stored: texts, conversation by conversation."""
        if not self.database.exists():
            return []
        store = SqliteStore(str(self.database))
        try:
            talks = store.conversations(Filter(limit=1000))
            return [
                entry.text
                for talk in sorted(talks, key=lambda one: one.id)
                for entry in store.entries(talk.id)
            ]
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
        process = Started(["watch", *words], self.environment, self.home, log)
        try:
            yield Watcher(process, log)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(WAIT_SECONDS)


class Watcher:
    """A watcher at work, and what it has said."""

    def __init__(self, process: Started, log: Path) -> None:
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
    failed = {
        "tool_use_id": "toolu_1",
        "type": "tool_result",
        "is_error": True,
        "content": "Exit code 1\n3 failed",
    }
    return [
        user("plan a trip to <b>Japan</b>", at=MONDAY),
        assistant("Gladly. The cherry blossom is in April.", at=MONDAY + 5, message_id="m1"),
        assistant(call, at=MONDAY + 6, message_id="m1"),
        user([failed], at=MONDAY + 9),
        assistant("The tests fail.", at=MONDAY + 10),
        *exchange("never mind", "As you like.", at=MONDAY + 20),
    ]
