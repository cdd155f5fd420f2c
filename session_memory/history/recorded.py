"""Records in transcripts behind items of the store, which keeps no arguments or contents."""

import os
from typing import Any

from ..common.errors import SessionMemoryError
from ..common.system.files import Closing
from ..common.text.sanitize import for_storage
from ..sessions.runtimes.base import Runtime
from ..sessions.runtimes.table import all_runtimes
from ..sessions.transcripts.edits import Edit
from ..sessions.transcripts.entries import ToolUse
from ..sessions.transcripts.lines import first_line, lines_forward
from ..sessions.transcripts.reader import TranscriptReader
from .store.location import StoreLocation
from .store.values import Conversation, StoredEntry


def call_in(
    line: tuple[int, bytes], runtime: Runtime, reader: TranscriptReader, item: StoredEntry
) -> tuple[ToolUse | None, dict[str, Any]]:
    """Return the call in a line that an item was made of, and its record; None if it is not
    there."""
    for index, record in enumerate(reader.records(line[1])):
        entry = runtime.records.entry(record, line[0] + index)
        for tool in entry.tools if entry is not None else ():
            if tool.name == item.tool and for_storage(tool.argument) == item.text:
                return tool, record
    return None, {}


def edits_of(location: StoreLocation, conversation: Conversation, item: StoredEntry) -> list[Edit]:
    """Return the removed and added texts of an edit, verbatim; [] if its transcript is gone or has
    changed."""
    runtime = next((each for each in all_runtimes() if each.name == conversation.runtime), None)
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
