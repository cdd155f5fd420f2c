"""Notes of a session that only its transcript has: updates, where they were delivered, and the model's thinking."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from ..errors import SessionMemoryError
from ..runtimes import Runtime, all_runtimes
from ..runtimes.records import INJECTED, Injected
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from ..store.values import TOOL_ROLE, Conversation, StoredEntry
from ..system.files import Closing
from ..transcripts.lines import first_line, lines_forward
from ..transcripts.reader import TranscriptReader
from ..upkeep.proof.told import told_in
from .dialogue import NOTE_ID, THOUGHT, TOLD, Block, DialoguePart, blocks_of, items_of

MOST_BYTES = 16 * 1024 * 1024  # of a transcript, searched for one chunk
DID_NEXT = 4
_WITHHELD = "Withheld: rules have changed since, or something was forgotten."


@dataclass
class AnnotatedSession:
    """A session of the store at `location`. What it was told before `hidden_at` is withheld, as in delivery_state."""

    store: SqliteStore
    location: StoreLocation
    hidden_at: float

    def blocks(self, conversation: Conversation, chunk: DialoguePart) -> list[Block]:
        """Return the blocks of a chunk with the notes between its items."""
        before = items_of(self.store, chunk._replace(first=chunk.first - 1, last=chunk.first - 1, is_open=False))
        items = items_of(self.store, chunk)
        begin = before[-1].offset if before and chunk.first > 1 else -1
        end = None if chunk.is_open or not items else items[-1].offset
        try:
            notes = list(self._notes(conversation, begin, end))
        except (OSError, SessionMemoryError):  # the dialogue is shown as stored
            notes = []
        blocks = list(blocks_of(list(merge(items, notes, key=lambda one: one.offset))))
        return [
            one._replace(did_next=tuple(islice(_did_next(blocks[at + 1 :]), DID_NEXT))) if one.role == TOLD else one
            for at, one in enumerate(blocks)
        ]

    def _notes(self, conversation: Conversation, begin: int, end: int | None) -> Iterator[StoredEntry]:
        """Yield the notes behind the record at `begin` and before that at `end`. Raises OSError."""
        runtime = next((one for one in all_runtimes() if one.name == conversation.runtime), None)
        file = self.location.transcript_of(conversation)
        if runtime is None or file is None:
            return
        with Closing(file.open()) as descriptor:
            size = os.fstat(descriptor).st_size
            until = size if end is None else min(size, end)
            reader = TranscriptReader(runtime, first_line(descriptor))
            start = max(0, begin)
            for offset, line in lines_forward(descriptor, start, min(until, start + MOST_BYTES)):
                may_hold = runtime.records.THINKING in line or runtime.records.prefilter(line, INJECTED)
                if offset > begin and may_hold:
                    yield from self._notes_in(runtime, reader, offset, line)

    def _notes_in(self, runtime: Runtime, reader: TranscriptReader, offset: int, line: bytes) -> Iterator[StoredEntry]:
        for record in reader.records(line):
            at = runtime.records.time(record)
            time = None if at is None else round(at * 1000)
            thought = runtime.records.thinking(record) if runtime.records.THINKING in line else ""
            if thought:
                yield StoredEntry(NOTE_ID, TOOL_ROLE, thought, time, "", offset, tool="Thinking", kind=THOUGHT)
            for event in runtime.records.events(record, offset, INJECTED):
                for text in told_in(event) if isinstance(event, Injected) else ():
                    shown = _WITHHELD if at is None or at < self.hidden_at else text
                    yield StoredEntry(NOTE_ID, TOLD, shown, time, "", offset)


def _did_next(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the first calls of the agent before the next prompt."""
    for block in blocks:
        if block.role == "user":
            return
        yield from (f"{one.tool} {one.argument}" for one in block.calls if one.kind != THOUGHT)
