"""A tool call in full. The store has only its main argument and its outcome, so the transcript is read at the call."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..runtimes.records import CallResult
from ..text.sanitize import all_for_people, for_people, for_storage
from ..transcripts.lines import first_line, lines_forward
from ..transcripts.reader import TranscriptReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtimes import Runtime
    from ..store.location import StoreLocation
    from ..store.values import Conversation, StoredEntry
    from ..transcripts.edits import Edit
    from ..transcripts.entries import ToolUse
    from ..transcripts.lines import Line

RESULT_BYTES = 8 * 1024 * 1024  # of the transcript after the call, searched for its result
RESULT_CHARACTERS = 20_000
MOST_DIFF_LINES = 2000  # a longer diff takes longer to compute than to read


class DiffLine(NamedTuple):
    """A line of a diff. `kind` is add, del, at (position) or ''."""

    kind: str
    text: str


class CallDetail(NamedTuple):
    """A call: its `argument`, the `diffs` of an edit, the `result`, the number of characters left out of it, and the
    reason if there is no more to see."""

    argument: str
    diffs: tuple[tuple[DiffLine, ...], ...] = ()
    result: str = ""
    left_out: int = 0
    problem: str = ""


def call_detail(location: StoreLocation, conversation: Conversation, item: StoredEntry) -> CallDetail:
    """Return the call behind an item of a conversation."""
    found = CallDetail(for_people(item.text))
    runtime = next((one for one in all_runtimes() if one.name == conversation.runtime), None)
    try:
        descriptor = _opened(location, conversation)
        if runtime is None or descriptor is None:
            return found._replace(problem="its transcript is gone; shown as stored")
        try:
            return _read(found, runtime, descriptor, item)
        finally:
            os.close(descriptor)
    except (OSError, SessionMemoryError) as error:
        return found._replace(problem=for_people(f"its transcript cannot be read: {error}"))


def diff(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return the diff of two texts; without an old text, every line is new."""
    old, new = before.splitlines(), after.splitlines()
    if not before or len(old) + len(new) > MOST_DIFF_LINES:
        return (*(DiffLine("del", line) for line in old), *(DiffLine("add", line) for line in new))
    kinds = {"+": "add", "-": "del", "@": "at"}
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    found = [DiffLine(kinds.get(line[0], ""), line[1:] if line[0] in "+- " else "") for line in lines]
    return tuple(found[1:] if found and found[0].kind == "at" else found)


def _opened(location: StoreLocation, conversation: Conversation) -> int | None:
    """Open the transcript; None if it is gone or must not be shown."""
    key = conversation.source_file
    for directory in location.watched if key else ():
        if directory.home == conversation.home and directory.holds(key):
            file = directory.file_at(f"{directory.path}/{key}")
            if file is not None:
                return file.open()
    return None


def _read(found: CallDetail, runtime: Runtime, descriptor: int, item: StoredEntry) -> CallDetail:
    lines = lines_forward(descriptor, item.offset, min(item.offset + RESULT_BYTES, os.fstat(descriptor).st_size))
    reader = TranscriptReader(runtime, first_line(descriptor))
    call, edits = _call_in(next(lines, (0, b"")), runtime, reader, item)
    if call is None:
        return found._replace(problem="its transcript has changed since; shown as stored")
    pairs = iter(all_for_people([text for edit in edits for text in edit]))
    diffs = tuple(diff(before, after) for before, after in zip(pairs, pairs))
    result = _result(lines, reader, call.call_id)
    text = for_people(result[: RESULT_CHARACTERS + 1000])[:RESULT_CHARACTERS]
    return found._replace(diffs=diffs, result=text, left_out=max(0, len(result) - RESULT_CHARACTERS))


def _call_in(
    line: Line, runtime: Runtime, reader: TranscriptReader, item: StoredEntry
) -> tuple[ToolUse | None, list[Edit]]:
    """Return the call in a line that an item was made of, and its edits."""
    for index, record in enumerate(reader.records(line[1])):
        entry = runtime.records.entry(record, line[0] + index)
        for tool in entry.tools if entry is not None else ():
            if tool.name == item.tool and for_storage([tool.argument]) == [item.text]:
                return tool, runtime.records.edits(record, tool.call_id)
    return None, []


def _result(lines: Iterator[Line], reader: TranscriptReader, call_id: str) -> str:
    """Return the text of a call's result from the lines after it; '' for none."""
    for found in reader.forward(lines, with_results=True):
        if isinstance(found, CallResult) and found.call_id in (call_id, call_id.partition(":")[0]):
            return _text_of(found.content)
    return ""


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))
