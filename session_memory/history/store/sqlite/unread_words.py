"""Finds transcripts with a person's words that an earlier version left out, to read them again.

A row of `memory_unread_words` is a file that an earlier version ingested. Each transcript is read
once. If it has a person's message that the store lacks, or stored with a program's block, its file
is forgotten, and the next ingestion reads it as a whole. Sessions with a deleted transcript stay as
they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from ....common.system.files import Opened
from ....common.system.quick_json import decode_line
from ....common.system.sqlite import fetch
from ....common.text.sanitize import for_people
from ....sessions.runtimes.detection import runtime_of
from ....sessions.transcripts.entries import Entry
from ....sessions.transcripts.lines import first_line, lines_forward
from ....sessions.transcripts.marks import entry_key, tool_key
from ....sessions.transcripts.mirror import EXCLUDED
from ....sessions.transcripts.reader import TranscriptReader
from ..ingest.sources import SourceDirectory
from .engine import SqliteStore
from .rows import ids_of

_WAITING = """
    SELECT f.id, f.home, f.root, f.file_path, f.last_processed_offset
    FROM memory_unread_words AS u JOIN memory_file_states AS f ON f.id = u.file_id
    ORDER BY f.last_entry_timestamp DESC
"""
_STORED = """
    SELECT k.key, e.content FROM memory_item_keys AS k
    LEFT JOIN memory_transcript_entries AS e ON e.id = k.id WHERE k.key IN carray(?)
"""
_BATCH = 1000  # messages
_BEFORE_WORDS = ("<", "[[ ##", '"<')  # how messages begin that may have a program's block


def forget_incomplete(
    store: SqliteStore, directories: Iterable[SourceDirectory], seconds: float
) -> int:
    """Forget the files that lack words of a person, for at most `seconds`; return their number.

    Call this before an ingestion of `directories`, because only their files are forgotten. Raises
    DatabaseError."""
    deadline = time.monotonic() + seconds
    places = {
        (directory.home, directory.root) for directory in directories if directory.is_expected()
    }
    incomplete: dict[str, list[str]] = {}
    read: list[int] = []
    for file_id, home, root, file_path, end in store.rows(_WAITING):
        if time.monotonic() > deadline:
            break
        if (home, root) not in places:
            continue
        read.append(file_id)
        if _lacks_words(store, f"{root}/{file_path}", home, end):
            incomplete.setdefault(home, []).append(file_path)
    if read:
        with store.transaction() as connection:
            connection.executemany(
                "DELETE FROM memory_unread_words WHERE file_id = ?",
                [(file_id,) for file_id in read],
            )
    for home, keys in incomplete.items():
        store.forget(home, *keys)
    return sum(map(len, incomplete.values()))


def _lacks_words(store: SqliteStore, path: str, home: str, end: int) -> bool:
    """Check if the first `end` bytes of a transcript have words that the store lacks.

    Return False if it cannot be read."""
    try:
        with Opened(path) as descriptor:
            said = _said(descriptor, home, end)
            while batch := dict(islice(said, _BATCH)):
                stored = dict(fetch(store.connection, _STORED, (ids_of(batch),)))
                if any(
                    key not in stored or _has_block(stored[key], text)
                    for key, text in batch.items()
                ):
                    return True
    except Exception:  # ingesting it reports the reason
        return False
    return False


def _said(descriptor: int, home: str, end: int) -> Iterator[tuple[int, str]]:
    """Yield the key and the text of each message and each command of a person."""
    runtime = runtime_of(descriptor)
    if runtime is None:
        return
    reader = TranscriptReader(runtime, first_line(descriptor), decode_line)
    size = min(end, os.fstat(descriptor).st_size)
    left_out = TranscriptReader(runtime, first_line(descriptor)).offsets_off_branch(
        descriptor, size
    )
    for entry in reader.forward(lines_forward(descriptor, 0, size), left_out=left_out):
        if isinstance(entry, Entry) and entry.role == "user":
            key = entry_key(home, entry)
            if entry.text:
                yield key, entry.text
            for place, tool in enumerate(entry.tools, 1):
                yield tool_key(key, place), tool.argument


def _has_block(stored: str | None, text: str) -> bool:
    """Check if a stored message has a block that is not the person's."""
    return (
        stored is not None
        and stored.startswith(_BEFORE_WORDS)
        and stored not in (EXCLUDED, for_people(text))
    )
