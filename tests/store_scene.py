"""A directory of transcripts beside a store, for the tests of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records import append, lines

from session_memory.store.ingest.extract import key_of
from session_memory.store.ingest.ingestion import Ingestion, IngestReport
from session_memory.store.ingest.sources import SourceDirectory
from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.values import (
    Batch,
    Conversation,
    FileState,
    Filter,
    NewEntry,
    NewTool,
    StoredEntry,
    ToolOutcome,
)

PROJECT = "-srv-agent"
EVERYTHING = Filter(limit=1000)
MINUTE = 60_000
START = 1_780_000_000_000


class Scene:
    """`root` holds the transcripts of one project. Every engine of the store is to be made by `open`."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.root = path / "projects"
        (self.root / PROJECT).mkdir(parents=True)
        self.database = path / "store" / "memory.db"
        self.options = options
        self.store = self.open()

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

    def conversations(self, **wanted: Any) -> list[Conversation]:
        """The oldest first."""
        return self.store.conversations(EVERYTHING._replace(**wanted))[::-1]

    def items(self, conversation: Conversation) -> list[StoredEntry]:
        return list(self.store.entries(conversation.id))

    def texts(self, **wanted: Any) -> list[str]:
        """What was said, conversation by conversation; a tool use as its name and argument."""
        return [
            f"{item.tool} {item.text}" if item.tool else item.text
            for conversation in self.conversations(**wanted)
            for item in self.items(conversation)
        ]


def state(name: str = "a", home: str = "", **fields: object) -> FileState:
    known = FileState(home, f"-srv-agent/{name}.jsonl", "/root", "claude-code", name, cwd="/srv/agent")
    return known._replace(**fields)


def said(
    text: str, minute: float = 0, role: str = "user", key: str = "", message: int = 0, **fields: object
) -> NewEntry:
    when = START + round(minute * MINUTE)
    return NewEntry(key_of(key or text), message, 0, role, text, when, "/srv/agent")._replace(**fields)


def tool(argument: str, ended: ToolOutcome | None = None, call: str = "") -> NewTool:
    return NewTool(key_of(f"tool {argument}"), key_of(call or argument), "Bash", "command", argument, ended)


def put(
    scene: Scene, before: FileState | None, after: FileState, *entries: NewEntry, outcomes: object = ()
) -> FileState:
    [stored] = scene.store.write([Batch(before, after, list(entries), list(outcomes))])
    assert stored is not None
    return stored
