"""Records in transcripts for items of the store, which keeps no arguments, contents or reasoning."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.errors import SessionMemoryError
from ..common.system.files import Closing, read_at
from ..common.system.quick_json import decode_line
from ..common.text.sanitize import for_people
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.table import all_runtimes
from ..sessions.settings.sections import Filtering
from ..sessions.transcripts.edits import Edit
from ..sessions.transcripts.entries import Entry, ToolUse
from ..sessions.transcripts.gate import Gate
from ..sessions.transcripts.lines import first_line, lines_forward
from ..sessions.transcripts.mirror import copies_of
from ..sessions.transcripts.reader import TranscriptReader
from .store.ingest.extract import ARGUMENT_CHARACTERS
from .store.location import StoreLocation
from .store.values import Conversation, RuleSubject, StoredEntry

if TYPE_CHECKING:
    from ..sessions.transcripts.lines import Line

# before the first item, where the reasoning that led to it is searched
_BYTES_BEFORE = 1024 * 1024


def call_in(
    line: tuple[int, bytes], runtime: Runtime, reader: TranscriptReader, item: StoredEntry
) -> tuple[ToolUse | None, dict[str, Any]]:
    """Return the call that became an item, from its line in the transcript, and its record.

    Return None if the line is missing."""
    for index, record in enumerate(reader.records(line[1])):
        entry = runtime.records.entry(record, line[0] + index)
        for tool in entry.tools if entry is not None else ():
            if _is_stored_as(tool, item):
                return tool, record
    return None, {}


def edits_of(location: StoreLocation, conversation: Conversation, item: StoredEntry) -> list[Edit]:
    """Return the removed and added texts of an edit, verbatim.

    Return [] if its transcript is gone or has changed."""
    runtime = _runtime_of(conversation)
    try:
        file = location.transcript_of(conversation)
        if runtime is None or file is None:
            return []
        with Closing(file.open()) as descriptor:
            reader = TranscriptReader(runtime, first_line(descriptor))
            size = os.fstat(descriptor).st_size
            line = next(lines_forward(descriptor, item.offset, size), (0, b""))
            tool, record = call_in(line, runtime, reader, item)
    except (OSError, SessionMemoryError):
        return []
    return runtime.records.edits(record, tool.call_id) if tool else []


class RecordedDetails(NamedTuple):
    """Details of items that the store does not have, by the items' ids.

    They are the reasoning that led to an item, and all arguments of a tool use, redacted."""

    reasoning: Mapping[int, str]
    arguments: Mapping[int, Mapping[str, object]]

    @classmethod
    def read(
        cls,
        location: StoreLocation,
        filtering: Filtering,
        conversation: Conversation,
        items: Sequence[StoredEntry],
    ) -> RecordedDetails | None:
        """Return the details of items, in file order, that `filtering` keeps, as far as the rules
        let them be shown; None if the transcript is gone or cannot be read."""
        is_wanted = filtering.keep_reasoning or filtering.keeps_all_parameters
        runtime = _runtime_of(conversation) if is_wanted and items else None
        if runtime is None:
            return None
        try:
            file = location.transcript_of(conversation)
            if file is None:
                return None
            gate = location.rules().gate(_subject(conversation), runtime, file.path)
            reading = _DetailReading(runtime, gate, items)
            with Closing(file.open()) as descriptor:
                reading.read(descriptor)
        except (OSError, SessionMemoryError):
            return None
        return cls(
            reading.reasoning if filtering.keep_reasoning else {},
            reading.arguments if filtering.keeps_all_parameters else {},
        )


def _subject(conversation: Conversation) -> RuleSubject:
    return RuleSubject(
        0,
        conversation.home,
        conversation.session_id,
        conversation.title,
        conversation.cwd,
        conversation.source_file,
    )


class _DetailReading:
    """The details of items in a transcript; only an item that is unchanged there gets any."""

    def __init__(self, runtime: Runtime, gate: Gate, items: Sequence[StoredEntry]) -> None:
        self.reasoning: dict[int, str] = {}
        self.arguments: dict[int, dict[str, object]] = {}
        self._runtime = runtime
        self._gate = gate
        self._first, self._last = items[0].offset, items[-1].offset
        self._items: dict[int, list[StoredEntry]] = {}
        for item in items:
            self._items.setdefault(item.offset, []).append(item)
        self._thoughts: list[str] = []

    def read(self, descriptor: int) -> None:
        """Read the records from shortly before the first item to the last. Raises OSError."""
        reader = TranscriptReader(self._runtime, first_line(descriptor), decode_line)
        size = os.fstat(descriptor).st_size
        start = _line_start(descriptor, self._first - _BYTES_BEFORE, self._first)
        lines = lines_forward(descriptor, start, size, self._last + 1)
        for event in reader.forward(self._noted(lines)):
            if isinstance(event, Entry):
                thoughts, self._thoughts = self._thoughts, []
                items = self._items.get(event.offset, [])
                is_shown = bool(items) and self._gate.told([event]) == [event]
                if is_shown and event.role == "assistant" and thoughts:
                    self.reasoning[items[0].id] = for_people("\n\n".join(thoughts)).strip()
                for tool in event.tools if is_shown else ():
                    self._add_arguments(tool, reader.record, items)

    def _noted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines, and note the reasoning in them."""
        for line in lines:
            self._thoughts += self._runtime.records.thoughts_in(line[1], decode_line)
            yield line

    def _add_arguments(
        self, tool: ToolUse, record: dict[str, Any], items: Iterable[StoredEntry]
    ) -> None:
        ids = [item.id for item in items if _is_stored_as(tool, item)]
        id = next((id for id in ids if id not in self.arguments), None)
        given = self._runtime.records.arguments(record, tool.call_id) if tool.call_id else {}
        if tool.kind == "edit":  # other texts are content of the file
            is_named = tool.argument in given.values()
            given = {
                name: value
                for name, value in given.items()
                if is_named and (value == tool.argument or isinstance(value, int | float))
            }
        if id is not None and given:
            (copy,) = copies_of([given], False)
            self.arguments[id] = dict(copy) if isinstance(copy, dict) else {}


def _line_start(descriptor: int, at: int, first: int) -> int:
    """Return where the first line after `at` begins; `first` is where a line begins."""
    if at <= 0:
        return 0
    line_feed = read_at(descriptor, at, first).find(b"\n")
    return first if line_feed < 0 else at + line_feed + 1


def _is_stored_as(tool: ToolUse, item: StoredEntry) -> bool:
    """Check if an item was made of a tool use."""
    stored = for_people(tool.argument)[:ARGUMENT_CHARACTERS]
    return for_people(tool.name) == item.tool and stored == item.text


def _runtime_of(conversation: Conversation) -> Runtime | None:
    return next((each for each in all_runtimes() if each.name == conversation.runtime), None)
