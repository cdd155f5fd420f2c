"""Transcript bytes as what the store takes: entries, tool uses and their outcomes, without secrets."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from ...system.files import read_at
from ...text.characters import plain
from ...text.sanitize import for_people
from ...text.secrets import redact
from ...text.secrets.scan import suspects
from ...transcripts.entry_reader import first_line
from ...transcripts.lines import lines_forward
from ...transcripts.reader import decode, is_whole
from ..values import NewEntry, NewTool, ToolOutcome
from .outcomes import outcome

if TYPE_CHECKING:
    from ...runtimes import Runtime
    from ...transcripts.entries import Entry

ARGUMENT_CHARACTERS = 4096
UNIQUE_ID_CHARACTERS = 32  # shorter ids (Pi's have 8) are unique in their file alone
_HALF = 1 << 63
_GOLDEN_RATIO = 0x9E3779B97F4A7C15  # times 2**64: multiples of it lie far from each other
_GROUP = 64  # texts that are looked through for secrets at once


class Extract(NamedTuple):
    """What stood in some bytes of a file: `reached` is where to read on, unless it `is_last`; `outcomes` are those of
    tool uses that were met in an earlier extract. `inode` and `size` (in bytes) are the file's as it was read; `title`
    has its rank."""

    inode: int
    size: int
    reached: int
    entries: list[NewEntry]
    outcomes: list[tuple[int, ToolOutcome]]
    title: tuple[int, str]
    cwd: str
    unreadable: int
    is_last: bool


class Extractor:
    """Reads one file of a group piece by piece."""

    def __init__(self, runtime: Runtime, descriptor: int, home: str = "") -> None:
        self._home = home
        self._runtime = runtime
        self._descriptor = descriptor
        self._branch = runtime.RECORDS.branch(first_line(descriptor))
        self._entries: list[Entry] = []
        self._ended: dict[str, ToolOutcome] = {}
        self._title: tuple[int, str] = (-1, "")
        self._cwd = ""
        self._unreadable = 0

    def read(self, start: int, end: int, limit: int) -> Extract:
        """What stands in `[start, end)`: at most about `limit` bytes of it, up to the last complete record."""
        self._entries, self._ended = [], {}
        self._title, self._cwd, self._unreadable = (-1, ""), "", 0
        may_matter, may_bring_results = self._runtime.RECORDS.may_matter, self._runtime.RECORDS.may_bring_results
        reached = start
        is_last = False
        for offset, line in lines_forward(self._descriptor, start, end):
            if offset - start >= limit:
                break
            reached = offset + len(line)
            if may_bring_results(line):
                if not self._takes_results(line):
                    self._take_line(line, offset)
            elif may_matter(line) and len(line) > 1:
                self._take_line(line, offset)
        else:
            reached = self._take_last_line(reached, end)
            is_last = True
        entries = self._new_entries()
        outcomes = [(key_of(call), _harmless(ended)) for call, ended in self._ended.items()]
        inode = os.fstat(self._descriptor).st_ino
        return Extract(inode, end, reached, entries, outcomes, self._title, self._cwd, self._unreadable, is_last)

    def _take_last_line(self, start: int, end: int) -> int:
        """Takes the last line though it has no line feed, if it is whole; the offset behind what was taken."""
        line = read_at(self._descriptor, start, end)
        if not is_whole(line):
            return start
        self._take_line(line, start)
        return start + len(line)

    def _takes_results(self, line: bytes) -> bool:
        """Takes the results of a line that brings nothing else, if it is one."""
        results = self._runtime.RECORDS.results_in(line, decode)
        for call_id, is_error, content in results or ():
            self._ended[call_id] = outcome(is_error, content)
        return results is not None

    def _take_line(self, line: bytes, offset: int) -> None:
        records, unreadable = decode(line)
        self._unreadable += unreadable
        for index, record in enumerate(records):
            if isinstance(record, dict):
                self._take_record(record, offset + index)
            else:
                self._unreadable += 1

    def _take_record(self, record: dict[str, Any], offset: int) -> None:
        runtime = self._runtime
        entry = runtime.RECORDS.entry(record, offset)
        if entry is not None:
            if self._branch is not None:
                self._branch.complete(entry)
            self._cwd = self._cwd or entry.cwd
            self._entries.append(entry)
        else:
            title = runtime.RECORDS.title(record)
            if title is not None and title[0] >= self._title[0]:
                self._title = (title[0], for_people(title[1]))
        if entry is None or entry.role == "user":
            for call_id, is_error, content in runtime.RECORDS.results(record):
                self._ended[call_id] = outcome(is_error, content)

    def _new_entries(self) -> list[NewEntry]:
        """What was met, with the outcomes that have come, without secrets."""
        entries = []
        message_id, message = "", 0
        for entry in self._entries:
            if entry.message_id != message_id:
                message_id = entry.message_id
                message = key_of(message_id) if message_id else 0
            entries.append(self._new_entry(entry, message))
        return _redacted(entries)

    def _new_entry(self, entry: Entry, message: int) -> NewEntry:
        when = None if entry.timestamp is None else round(entry.timestamp * 1000)
        identity = self._home + (entry.id or f"{entry.role} {entry.text}")
        key = key_of(identity if len(entry.id) >= UNIQUE_ID_CHARACTERS else f"{identity} {when}")
        if entry.tools and not message:  # text and tool uses of one record are one message
            message = key
        tools = []
        for number, tool in enumerate(entry.tools):
            ended = self._ended.pop(tool.call_id, None)
            call = 0 if ended else key_of(tool.call_id)
            argument = plain(tool.argument[:ARGUMENT_CHARACTERS])
            tools.append(NewTool(_mixed(key, number), call, tool.name, tool.kind, argument, ended))
        return NewEntry(key, message, entry.offset, entry.role, plain(entry.text), when, entry.cwd, tuple(tools))


def key_of(text: str) -> int:
    """63 bits by which an id is found again: signed, as SQLite has it."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _mixed(key: int, number: int) -> int:
    """The key of the tool use of this number in the entry of this key."""
    return (key + (number + 1) * _GOLDEN_RATIO + _HALF) % (2 * _HALF) - _HALF


def _redacted(entries: list[NewEntry]) -> list[NewEntry]:
    """The entries without secrets. Nearly none has one, so that they are looked through several at once."""
    for at in range(0, len(entries), _GROUP):
        texts: list[str] = []
        owners: list[int] = []
        for number, entry in enumerate(entries[at : at + _GROUP], at):
            texts.append(entry.text)
            for tool in entry.tools:
                texts.append(tool.argument)
                if tool.ended and tool.ended.error:
                    texts.append(tool.ended.error)
            owners += [number] * (len(texts) - len(owners))
        for number in {owners[index] for index in suspects(texts)}:
            entries[number] = _without_secrets(entries[number])
    return entries


def _without_secrets(entry: NewEntry) -> NewEntry:
    tools = [
        tool._replace(argument=redact(tool.argument), ended=tool.ended and _harmless(tool.ended))
        for tool in entry.tools
    ]
    return entry._replace(text=redact(entry.text), tools=tuple(tools))


def _harmless(ended: ToolOutcome) -> ToolOutcome:
    return ended._replace(error=redact(ended.error)) if ended.error else ended
