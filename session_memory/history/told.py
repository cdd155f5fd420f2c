"""Texts that sessions were told, and the files that they read, from their transcripts."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ..awareness.activity.delivery import ARRIVED, DeliverySearch
from ..common.system.files import Closing
from ..common.text.tokens import CHARACTERS_PER_TOKEN
from ..sessions.confined_files import OutsideGroupError
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.detection import runtime_of
from ..sessions.runtimes.records import CALLS, INJECTED, MESSAGES, RESULTS, CallResult, Injected
from ..sessions.transcripts.entries import INTRODUCTION, REMEMBERED, Entry
from ..sessions.transcripts.lines import first_line, holds_bytes, id_checksum, lines_forward
from ..sessions.transcripts.reader import TranscriptReader
from .store.ingest.extract import result_text
from .store.ingest.sources import SourceFile

if TYPE_CHECKING:
    from ..sessions.runtimes.records import Wanted

READ = "read"
_CLASH = b"CONFLICT ("
_MARKS = (INTRODUCTION.partition(",")[0].encode(), REMEMBERED.partition(",")[0].encode(), _CLASH)
_MERGE = re.compile(r"^CONFLICT \([^)]*\): Merge conflict in (.+)$", re.MULTILINE)
_PATH = re.compile(r"- there is no (.+); the one known file of that name is (.+)")


class ToldText(NamedTuple):
    """One text of ours in a transcript.

    `at` is its time (milliseconds since the epoch, None if unknown), `offset` its byte position.
    `has_arrived` means that the conversation continued from it."""

    text: str
    at: int | None
    offset: int
    has_arrived: bool

    @property
    def is_of_memories(self) -> bool:
        """Check if the text has memories and is not an update."""
        return self.text.startswith(REMEMBERED)

    @property
    def paths(self) -> tuple[str, str] | None:
        """Return the missing path and the intended one, if the text came with a failed call."""
        match = _PATH.fullmatch(self.text.strip())
        return (match[1], match[2]) if match else None


class ReadFile(NamedTuple):
    """A file that a session read.

    `content` is a hash of the text that it got, `characters` the length of that text."""

    path: str
    content: bytes
    characters: int
    at: int


class TranscriptNotes(NamedTuple):
    """Notes on one transcript of `runtime`.

    `merges` are the files in which a merge conflicted, each with the time."""

    runtime: Runtime
    told: list[ToldText]
    reads: list[ReadFile]
    merges: list[tuple[int, str]]

    def without_copies(self, known: set[tuple[str, int | None]]) -> TranscriptNotes:
        """Return the notes without told texts that are `known`, and add the others to these.

        A fork and a resume repeat a text with its time."""
        texts = {
            (text.text, text.at): text
            for text in reversed(self.told)
            if (text.text, text.at) not in known
        }
        known.update(texts)
        return self._replace(told=list(texts.values())[::-1])


def _our_parts(event: Injected) -> list[str]:
    """Return the paragraphs of an event that are ours, unchanged."""
    parts = [part for text in event.texts for part in text.split("\n\n")]
    return [part for part in parts if INTRODUCTION in part or part.startswith(REMEMBERED)]


def told_in(event: Injected) -> list[str]:
    """Return our texts among those that hooks gave the agent, without their common first line."""
    return [part.partition(INTRODUCTION)[2] or part for part in _our_parts(event)]


def notes_of(file: SourceFile, reads: Collection[int] | None = None) -> TranscriptNotes | None:
    """Return the notes on a transcript; None if it cannot be read.

    `reads` are the offsets of the records whose reads count. Without any, a file that contains none
    of the marks searched for is not decoded."""
    try:
        with Closing(file.open()) as descriptor:
            runtime = runtime_of(descriptor)
            if runtime is None:
                return None
            size = os.fstat(descriptor).st_size
            if not reads and not any(holds_bytes(descriptor, mark, size) for mark in _MARKS):
                return TranscriptNotes(runtime, [], [], [])
            return _Pass(runtime, reads or ()).over(descriptor, size)
    except (OSError, OutsideGroupError):
        return None


class _Pass:
    """One pass over a transcript."""

    def __init__(self, runtime: Runtime, reads: Collection[int]) -> None:
        self._runtime = runtime
        self._records = runtime.records
        self._reads = frozenset(reads)
        self._told: list[tuple[str, int | None, int, DeliverySearch]] = []
        self._open: list[DeliverySearch] = []
        self._pending: dict[str, str] = {}
        self._found = TranscriptNotes(runtime, [], [], [])

    def _wanted(self, offset: int, line: bytes) -> list[Wanted]:
        """Return the kinds of events that are needed and that a line may have."""
        wanted = [MESSAGES | CALLS] if offset in self._reads else []
        is_result = _CLASH in line or any(id.encode() in line for id in self._pending)
        if is_result and self._records.prefilter(line, RESULTS):
            wanted.append(RESULTS)
        if self._records.prefilter(line, INJECTED):
            wanted.append(INJECTED)
        return wanted

    def over(self, descriptor: int, size: int) -> TranscriptNotes:
        """Return the notes on the first `size` bytes."""
        reader = TranscriptReader(self._runtime, first_line(descriptor))
        branch = self._records.open_transcript(first_line(descriptor))
        for offset, line in lines_forward(descriptor, 0, size):
            for search in self._open:
                search.read(line)
            self._open = [search for search in self._open if not search.is_over]
            wanted = self._wanted(offset, line)
            for record in reader.records(line) if wanted else ():
                time = self._records.time(record)
                at = None if time is None else round(time * 1000)
                events = [self._records.events(record, offset, kinds) for kinds in wanted]
                for event in [event for each in events for event in each]:
                    if isinstance(event, Injected) and not (branch and branch.is_copied(time)):
                        self._take_told(event, at, offset, line)
                    elif isinstance(event, Entry):
                        calls = [tool for tool in event.tools if tool.kind == READ and tool.call_id]
                        self._pending.update({tool.call_id: tool.argument for tool in calls})
                    elif isinstance(event, CallResult):
                        self._take_result(event, at or 0)
        outcomes = [
            (text, at, offset, search.outcome == ARRIVED) for text, at, offset, search in self._told
        ]
        self._found.told.extend(map(ToldText._make, outcomes))
        return self._found

    def _take_told(self, event: Injected, at: int | None, offset: int, line: bytes) -> None:
        for part, text in zip(_our_parts(event), told_in(event)):
            search = DeliverySearch(id_checksum(part), self._runtime)
            search.read(line)
            self._open.append(search)
            self._told.append((text, at, offset, search))

    def _take_result(self, result: CallResult, at: int) -> None:
        text = result_text(result.content)
        self._found.merges.extend((at, name.strip()) for name in _MERGE.findall(text))
        path = self._pending.pop(result.call_id, "")
        if path and text and not result.has_failed:
            digest = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
            self._found.reads.append(ReadFile(path, digest, len(text), at))


def told_tokens(
    files: Iterable[SourceFile], since: int | None = None, until: int | None = None
) -> int:
    """Return the approximate tokens that sessions with these transcripts were told.

    The time is limited in milliseconds since the epoch."""
    known: set[tuple[str, int | None]] = set()
    texts = [
        text
        for file in files
        if (notes := notes_of(file))
        for text in notes.without_copies(known).told
    ]
    is_limited = since is not None or until is not None
    wanted = [
        text
        for text in texts
        if not is_limited or (since or 0) <= (text.at or 0) <= (until or text.at or 0)
    ]
    return sum(len(text.text) for text in wanted) // CHARACTERS_PER_TOKEN
