"""Measure how much filtering removes from a transcript."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from ..runtimes import Runtime
from ..runtimes.detection import runtime_of
from ..runtimes.records import CALLS, MESSAGES, RESULTS, SUB_AGENTS, CallResult
from ..settings.sections import MemorySettings
from ..store.ingest.extract import Extractor, result_text
from ..store.ingest.values import NewEntry, ToolOutcome
from ..store.rules import ReadRules
from ..store.values import TOOL_ROLE, RuleSubject, StoredEntry
from ..system.files import Opened
from ..system.quick_json import decode_line
from ..transcripts.entries import Entry
from ..transcripts.lines import first_line, lines_forward
from ..transcripts.reader import TranscriptReader
from .budget import estimated_tokens
from .filtering import chunks, exchanges, filtered

_CONTENT = MESSAGES | CALLS | RESULTS


class Reduction(NamedTuple):
    """Sizes of a transcript. `before` is the content of its messages: text, thinking, parameters (as JSON) and results
    of tool calls, including sub-agents, without images. `after` is what filtering keeps, in `exchanges` and `chunks`.
    Tokens are upper estimates."""

    file_bytes: int = 0
    characters_before: int = 0
    tokens_before: int = 0
    characters_after: int = 0
    tokens_after: int = 0
    exchanges: int = 0
    chunks: int = 0

    def plus(self, other: Reduction) -> Reduction:
        """Return the sum."""
        return Reduction(*[one + more for one, more in zip(self, other)])

    @property
    def reduction(self) -> float:
        """The share of characters that filtering removes; 0 if speakers' names make the text longer."""
        return max(0.0, 1 - self.characters_after / self.characters_before) if self.characters_before else 0.0


def measured(path: str, settings: MemorySettings, rules: ReadRules | None = None) -> Reduction | None:
    """Measure a transcript; None if no runtime wrote it or `rules` exclude it. Raises OSError."""
    with Opened(path) as descriptor:
        size, runtime = os.fstat(descriptor).st_size, runtime_of(descriptor)
        found = _entries(runtime, descriptor, size, path, rules) if runtime else None
        if runtime is None or found is None:
            return None
        characters = tokens = 0
        for text in _contents(runtime, descriptor, size):
            characters += len(text)
            tokens += estimated_tokens(text)
    text = filtered(found, settings.filtering)
    pieces = chunks(found, settings.filtering, settings.chunking.max_chunk_tokens)
    return Reduction(size, characters, tokens, len(text), estimated_tokens(text), len(exchanges(found)), len(pieces))


def transcript_entries(path: str, rules: ReadRules | None = None) -> list[StoredEntry]:
    """Return the entries and tool calls of a transcript as the store would; [] if no runtime wrote it or `rules`
    exclude it. Raises OSError."""
    with Opened(path) as descriptor:
        runtime = runtime_of(descriptor)
        found = _entries(runtime, descriptor, os.fstat(descriptor).st_size, path, rules) if runtime else None
        return found or []


def _entries(
    runtime: Runtime, descriptor: int, size: int, path: str, rules: ReadRules | None
) -> list[StoredEntry] | None:
    read = Extractor(runtime, descriptor, runtime.session_id_of(path)).read(0, size, size + 1)
    if rules is not None:
        key = "/".join(path.split(os.sep)[-2:])
        file = RuleSubject(0, "", runtime.session_id_of(path), read.title[1], read.cwd, key)
        gate = rules.gate(file, runtime, os.path.abspath(path))
        if gate.rule.is_private:
            return None
        reader = TranscriptReader(runtime, first_line(descriptor), decode_line)
        told = [one for one in reader.forward(lines_forward(descriptor, 0, size)) if isinstance(one, Entry)]
        with_text = {one.offset for one in told if not gate.rule_of(one).is_private}
        read = read._replace(entries=[one for one in read.entries if one.offset in with_text])
    ended = dict(read.outcomes)
    found: list[StoredEntry] = []
    known: set[int] = set()
    for entry in read.entries:
        if entry.key not in known:
            known.add(entry.key)
            found += _items(entry, len(found) + 1, ended)
    return found


def _items(entry: NewEntry, number: int, ended: dict[int, ToolOutcome]) -> list[StoredEntry]:
    """Return an entry and its tool calls as items with ids from `number`."""
    items = []
    if entry.text:
        items.append(
            StoredEntry(number, entry.role, entry.text, entry.timestamp, entry.cwd, entry.offset, entry.message)
        )
    for at, tool in enumerate(entry.tools, number + len(items)):
        item = StoredEntry(at, TOOL_ROLE, tool.argument, entry.timestamp, entry.cwd, entry.offset, entry.message)
        item = item._replace(tool=tool.name, kind=tool.kind)
        end = tool.ended or ended.get(tool.call)
        if end is not None:
            item = item._replace(outcome=end.outcome, error=end.error, result_size=end.size, result_lines=end.lines)
        items.append(item)
    return items


def _contents(runtime: Runtime, descriptor: int, size: int) -> Iterator[str]:
    """Yield what the messages of a transcript hold."""
    records = runtime.records
    for _, line in lines_forward(descriptor, 0, size):
        for record in decode_line(line)[0] if len(line) > 1 else ():
            if not isinstance(record, dict):
                continue
            for one in records.events(record, 0, _CONTENT) or records.events(record, 0, _CONTENT | SUB_AGENTS):
                if isinstance(one, Entry):
                    yield one.text
                    for tool in one.tools:
                        given = records.arguments(record, tool.call_id) if tool.call_id else {}
                        yield json.dumps(given, ensure_ascii=False) if given else tool.argument
                elif isinstance(one, CallResult):
                    yield result_text(one.content)
            yield records.thinking(record) if records.THINKING in line else ""
