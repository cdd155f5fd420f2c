"""Real transcripts, if they are beside the project, which contains no word of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Conversation, Filter, StoredEntry

from .scratch import scratch_directory

TRANSCRIPTS = Path(__file__).resolve().parents[2] / "shared" / "transcripts"


def conversations_of(
    transcripts: Path, *runtimes: str
) -> Iterator[tuple[Conversation, list[StoredEntry]]]:
    """Yield the conversations in the folders of these runtimes, each with its entries."""
    with scratch_directory() as directory, closing(SqliteStore(f"{directory}/store.db")) as store:
        for runtime in runtimes:
            if (transcripts / runtime).is_dir():
                Ingestion(store).scan(SourceDirectory(str(transcripts / runtime)))
        for conversation in store.conversations(Filter(limit=-1)):
            yield conversation, list(store.entries(conversation.id))
