"""Texts that sessions were told, and the files that they read, from their transcripts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..awareness.activity.delivery import ARRIVED, DeliverySearch
from ..common.system.files import Closing
from ..common.text.sanitize import for_people
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
from .store.sqlite.counted_files import CountedFile, CountedFiles, CountedTranscript
from .store.values import key_of
from .told_lines import ToldLine

if TYPE_CHECKING:
    from ..sessions.runtimes.records import Wanted

READ = "read"
_CLASH = b"CONFLICT ("
_MARKS = (INTRODUCTION.partition(",")[0].encode(), REMEMBERED.partition(",")[0].encode(), _CLASH)
_MERGE = re.compile(r"^CONFLICT \([^)]*\): Merge conflict in (.+)$", re.MULTILINE)
_PATH = re.compile(r"- there is no (.+); the one known file of that name is (.+)")


class ToldText(NamedTuple):
    """The facts of one text of ours in a transcript: names of files, but not the text.

    `identity` is a hash of the text. `at` is its time (milliseconds since the epoch, None if
    unknown), `offset` its byte position. `has_arrived` means that the conversation continued from
    it. `is_of_memories` means that it has memories and is not an update. If it came with a failed
    call, `paths` are the missing path and the intended one. `lines` are its `!` lines."""

    identity: int
    characters: int
    at: int | None
    offset: int
    has_arrived: bool
    is_of_memories: bool
    paths: tuple[str, str] | None
    lines: tuple[ToldLine, ...]

    @classmethod
    def of(cls, text: str, at: int | None, offset: int, *, has_arrived: bool) -> ToldText:
        """Return the facts of a text that a session was told."""
        match = _PATH.fullmatch(text.strip())
        lines = [line for line in text.split("\n") if line.startswith("! ")]
        return cls(
            key_of(text),
            len(text),
            at,
            offset,
            has_arrived,
            text.startswith(REMEMBERED),
            (for_people(match[1]), for_people(match[2])) if match else None,
            tuple(ToldLine.of(for_people(line)) for line in lines),
        )


class ReadFile(NamedTuple):
    """A file that a session read.

    `offset` is the call's position. `identity` is a hash of the path and the text that it got,
    `characters` the length of that text."""

    offset: int
    identity: int
    characters: int
    at: int


class TranscriptNotes(NamedTuple):
    """Notes on one transcript of `runtime`.

    `merges` are the files in which a merge conflicted, each with the time."""

    runtime: Runtime
    told: list[ToldText]
    reads: list[ReadFile]
    merges: list[tuple[int, str]]

    def without_copies(self, known: set[tuple[int, int | None]]) -> TranscriptNotes:
        """Return the notes without told texts that are `known`, and add the others to these.

        A fork and a resume repeat a text with its time."""
        texts = {
            (text.identity, text.at): text
            for text in reversed(self.told)
            if (text.identity, text.at) not in known
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


def notes_of(
    file: SourceFile, counted: CountedFiles, reads: Collection[int] = ()
) -> TranscriptNotes | None:
    """Return the notes on a transcript; None if it cannot be read.

    `reads` are the offsets of the records whose reads count. A transcript that was `counted` with
    them is not read again; the notes of a partly forgotten one are not kept. Without any, a file
    that contains none of the marks searched for is not decoded."""
    transcript = CountedTranscript(file.path, file.stamp, file.named_path)
    needed = set(reads)
    known = counted.find(transcript)
    if known is not None and known.notes is not None:
        loaded = _loaded(known.runtime, known.notes)
        if loaded is not None:
            notes, counted_reads = loaded
            if needed <= counted_reads:
                return _with_reads(notes, needed)
            needed |= counted_reads
    notes_read = _notes_in(file, needed)
    if notes_read is None:
        return None
    if not counted.is_forgotten(file.directory.home, file.key):
        dumped = _dumped(notes_read, needed)
        counted.keep(transcript, CountedFile(notes_read.runtime, dumped))
    return _with_reads(notes_read, set(reads))


def _with_reads(notes: TranscriptNotes, offsets: set[int]) -> TranscriptNotes:
    return notes._replace(reads=[read for read in notes.reads if read.offset in offsets])


def _dumped(notes: TranscriptNotes, offsets: Iterable[int]) -> str:
    """Return notes as JSON, '' for none, with the offsets of the records whose reads counted."""
    fields = [notes.told, notes.reads, notes.merges, sorted(offsets)]
    return json.dumps(fields, separators=(",", ":")) if any(fields) else ""


def _loaded(writer: Runtime, dumped: str) -> tuple[TranscriptNotes, set[int]] | None:
    """Return notes and offsets from a dump; None if it has another form."""
    try:
        texts, reads, merges, offsets = json.loads(dumped) if dumped else ([], [], [], [])
        told_texts = [
            ToldText._make(
                (
                    *plain,
                    tuple(paths) if paths else None,
                    tuple(ToldLine(kind, tuple(names)) for kind, names in lines),
                )
            )
            for *plain, paths, lines in texts
        ]
        files = [ReadFile(*read) for read in reads]
        merged = [(at, name) for at, name in merges]
        return TranscriptNotes(writer, told_texts, files, merged), set(offsets)
    except (ValueError, TypeError):
        return None


def _notes_in(file: SourceFile, reads: Collection[int]) -> TranscriptNotes | None:
    try:
        with Closing(file.open()) as descriptor:
            writer = runtime_of(descriptor)
            if writer is None:
                return None
            size = os.fstat(descriptor).st_size
            if not reads and not any(holds_bytes(descriptor, mark, size) for mark in _MARKS):
                return TranscriptNotes(writer, [], [], [])
            return _Pass(writer, reads).over(descriptor, size)
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
        self._pending: dict[str, tuple[str, int]] = {}
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
                is_copied = branch is not None and branch.is_copied(time)
                for kinds in wanted:
                    for event in self._records.events(record, offset, kinds):
                        if not (is_copied and isinstance(event, Injected)):
                            self._take(event, at, offset, line)
        for text, at, offset, search in self._told:
            has_arrived = search.outcome == ARRIVED
            self._found.told.append(ToldText.of(text, at, offset, has_arrived=has_arrived))
        return self._found

    def _take(self, event: object, at: int | None, offset: int, line: bytes) -> None:
        if isinstance(event, Injected):
            self._take_told(event, at, offset, line)
        elif isinstance(event, Entry):
            calls = [tool for tool in event.tools if tool.kind == READ and tool.call_id]
            self._pending.update({tool.call_id: (tool.argument, offset) for tool in calls})
        elif isinstance(event, CallResult):
            self._take_result(event, at or 0)

    def _take_told(self, event: Injected, at: int | None, offset: int, line: bytes) -> None:
        for part, text in zip(_our_parts(event), told_in(event)):
            search = DeliverySearch(id_checksum(part), self._runtime)
            search.read(line)
            self._open.append(search)
            self._told.append((text, at, offset, search))

    def _take_result(self, result: CallResult, at: int) -> None:
        text = result_text(result.content)
        self._found.merges.extend((at, for_people(name.strip())) for name in _MERGE.findall(text))
        path, offset = self._pending.pop(result.call_id, ("", 0))
        if path and text and not result.has_failed:
            identity = key_of(f"{path}\0{text}")
            self._found.reads.append(ReadFile(offset, identity, len(text), at))


def told_tokens(
    files: Iterable[SourceFile],
    counted: CountedFiles,
    since: int | None = None,
    until: int | None = None,
) -> int:
    """Return the approximate tokens that sessions with these transcripts were told.

    The time is limited in milliseconds since the epoch."""
    known: set[tuple[int, int | None]] = set()
    with counted:
        texts = [
            text
            for file in files
            if (notes := notes_of(file, counted))
            for text in notes.without_copies(known).told
        ]
    is_limited = since is not None or until is not None
    wanted = [
        text
        for text in texts
        if not is_limited or (since or 0) <= (text.at or 0) <= (until or text.at or 0)
    ]
    return sum(text.characters for text in wanted) // CHARACTERS_PER_TOKEN
