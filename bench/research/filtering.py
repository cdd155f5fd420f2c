"""`python -m bench.research.filtering`: how much and how fast filtering shortens transcripts.

Each setting that keeps less is measured beside the default.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from session_memory.common.system.files import Opened
from session_memory.common.system.quick_json import decode_line
from session_memory.common.text.tokens import estimated_tokens
from session_memory.history.filtering import chunks, exchanges, filtered
from session_memory.history.store.ingest.extract import Extractor, result_text
from session_memory.history.store.ingest.values import NewEntry, ToolOutcome
from session_memory.history.store.values import TOOL_ROLE, StoredEntry
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.detection import runtime_of
from session_memory.sessions.runtimes.records import (
    CALLS,
    MESSAGES,
    RESULTS,
    SUB_AGENTS,
    CallResult,
)
from session_memory.sessions.settings.sections import Filtering, MemorySettings
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.lines import lines_forward

from ..command import run
from ..real import TRANSCRIPTS

SETTINGS = {
    "default": Filtering(),
    "parameters uncapped": Filtering(max_parameter_chars=10**6),
    "without tool structure": Filtering(keep_tool_structure=False),
    "user messages only": Filtering(keep_tool_structure=False, keep_agent_responses=False),
}
_CONTENT = MESSAGES | CALLS | RESULTS


def main(*directories: Path) -> int:
    given = directories or (TRANSCRIPTS / "claude", TRANSCRIPTS / "pi")
    if not all(directory.is_dir() for directory in given):
        print("no transcripts there: name directories that hold some", file=sys.stderr)
        return 1
    print("| transcripts | kept | characters before | after | less | of the files | MB/s |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for directory in given:
        for name, filtering in SETTINGS.items():
            print(row(directory, name, MemorySettings(filtering=filtering)))
    return 0


def row(directory: Path, name: str, settings: MemorySettings) -> str:
    """A line of the table for all transcripts below a directory."""
    total = Reduction()
    began = time.perf_counter()
    for path in sorted(directory.rglob("*.jsonl")):
        total = total.plus(measured(str(path), settings) or Reduction())
    rate = total.file_bytes / 1e6 / (time.perf_counter() - began)
    sizes = f"{total.characters_before:,} | {total.characters_after:,} | {total.reduction:.1%}"
    of_files = 1 - total.characters_after / total.file_bytes if total.file_bytes else 0.0
    return f"| {directory.name} | {name} | {sizes} | {of_files:.1%} | {rate:.0f} |"


class Reduction(NamedTuple):
    """Sizes of a transcript.

    `before` is the content of its messages: text, thinking, parameters (as JSON) and results of
    tool calls, including sub-agents, without images. `after` is the filtered content, in
    `exchanges` and `chunks`. Tokens are upper estimates."""

    file_bytes: int = 0
    characters_before: int = 0
    tokens_before: int = 0
    characters_after: int = 0
    tokens_after: int = 0
    exchanges: int = 0
    chunks: int = 0

    def plus(self, other: Reduction) -> Reduction:
        """Return the sum."""
        return Reduction(*[value + more for value, more in zip(self, other)])

    @property
    def reduction(self) -> float:
        """Return the share of characters that filtering removes.

        Return 0 if speakers' names make the text longer."""
        return (
            max(0.0, 1 - self.characters_after / self.characters_before)
            if self.characters_before
            else 0.0
        )


def measured(path: str, settings: MemorySettings) -> Reduction | None:
    """Measure a transcript; None if no runtime wrote it. Raises OSError."""
    with Opened(path) as descriptor:
        size, runtime = os.fstat(descriptor).st_size, runtime_of(descriptor)
        if runtime is None:
            return None
        entries = _entries(runtime, descriptor, size, path)
        characters = tokens = 0
        for text in _contents(runtime, descriptor, size):
            characters += len(text)
            tokens += estimated_tokens(text)
    text = filtered(entries, settings.filtering)
    pieces = chunks(entries, settings.filtering, settings.chunking.max_chunk_tokens)
    return Reduction(
        size,
        characters,
        tokens,
        len(text),
        estimated_tokens(text),
        len(exchanges(entries)),
        len(pieces),
    )


def transcript_entries(path: str) -> list[StoredEntry]:
    """Return a transcript's entries and tool calls as in the store; [] for an unknown runtime."""
    with Opened(path) as descriptor:
        runtime = runtime_of(descriptor)
        return _entries(runtime, descriptor, os.fstat(descriptor).st_size, path) if runtime else []


def _entries(runtime: Runtime, descriptor: int, size: int, path: str) -> list[StoredEntry]:
    read = Extractor(runtime, descriptor, runtime.session_id_of(path)).read(0, size, size + 1)
    ended = dict(read.outcomes)
    items: list[StoredEntry] = []
    known: set[int] = set()
    for entry in read.entries:
        if entry.key not in known:
            known.add(entry.key)
            items += _items(entry, len(items) + 1, ended)
    return items


def _items(entry: NewEntry, number: int, ended: dict[int, ToolOutcome]) -> list[StoredEntry]:
    """Return an entry and its tool calls as items with ids from `number`."""
    items = []
    if entry.text:
        items.append(
            StoredEntry(
                number,
                entry.role,
                entry.text,
                entry.timestamp,
                entry.cwd,
                entry.offset,
                entry.message,
            )
        )
    for at, tool in enumerate(entry.tools, number + len(items)):
        item = StoredEntry(
            at, TOOL_ROLE, tool.argument, entry.timestamp, entry.cwd, entry.offset, entry.message
        )
        item = item._replace(tool=tool.name, kind=tool.kind)
        end = tool.ended or ended.get(tool.call)
        if end is not None:
            item = item._replace(
                outcome=end.outcome, error=end.error, result_size=end.size, result_lines=end.lines
            )
        items.append(item)
    return items


def _contents(runtime: Runtime, descriptor: int, size: int) -> Iterator[str]:
    """Yield what the messages of a transcript hold."""
    records = runtime.records
    for _, line in lines_forward(descriptor, 0, size):
        for record in decode_line(line)[0] if len(line) > 1 else ():
            if not isinstance(record, dict):
                continue
            for event in records.events(record, 0, _CONTENT) or records.events(
                record, 0, _CONTENT | SUB_AGENTS
            ):
                if isinstance(event, Entry):
                    yield event.text
                    for tool in event.tools:
                        given = records.arguments(record, tool.call_id) if tool.call_id else {}
                        yield json.dumps(given, ensure_ascii=False) if given else tool.argument
                elif isinstance(event, CallResult):
                    yield result_text(event.content)
            yield records.thinking(record) if records.THINKING in line else ""


if __name__ == "__main__":
    run(main)
