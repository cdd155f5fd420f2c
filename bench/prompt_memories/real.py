"""What users typed in real transcripts, as prompts about nothing that is remembered in the labelled sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from session_memory.store.ingest.ingestion import Ingestion
from session_memory.store.ingest.sources import SourceDirectory
from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.values import Filter

from ..scratch import scratch_directory
from .prompts import UNRELATED, Prompt

RUNTIMES = ("claude", "codex", "pi")


def prompts_of(transcripts: Path, directories: Iterable[str]) -> list[Prompt]:
    """Each message of a user in `transcripts`, as a prompt in each of `directories`; none where these are not there."""
    with scratch_directory() as directory:
        store = SqliteStore(f"{directory}/store.db")
        for runtime in RUNTIMES:
            if (transcripts / runtime).is_dir():
                Ingestion(store).scan(SourceDirectory(str(transcripts / runtime)))
        texts = [
            entry.text
            for conversation in store.conversations(Filter(limit=-1))
            for entry in store.entries(conversation.id)
            if entry.role == "user" and entry.text
        ]
        store.close()
    return [Prompt(UNRELATED, place, text) for text in dict.fromkeys(texts) for place in sorted(directories)]
