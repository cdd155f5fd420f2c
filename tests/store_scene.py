"""A directory of transcripts beside a store, for the tests of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders import append, lines

from session_memory.store.ingest import Ingestion, Report
from session_memory.store.sources import Source
from session_memory.store.sqlite import SqliteStore
from session_memory.store.values import Conversation, Filter, StoredEntry

PROJECT = "-srv-agent"
EVERYTHING = Filter(limit=1000)


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

    def ingest(self, root: Path | None = None, home: str = "", **options: Any) -> Report:
        ingestion = Ingestion(self.store, home, **options)
        ingestion.scan(Source(str(root or self.root), home))
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
