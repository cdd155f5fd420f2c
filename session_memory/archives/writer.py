"""One writing of an archive, streamed from the transcript to a temporary file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..activity.unseen import FIRST_PROMPT_RANK
from ..system.files import open_private, open_regular
from ..text.format import one_line, shorten
from ..text.sanitize import for_people, for_storage
from ..text.timestamps import epoch_seconds, iso_time
from ..transcripts.reader import Reading
from . import format as archive_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ..runtimes import Runtime
    from ..transcripts.entries import Entry, ToolUse

PROMPT_TITLE_CHARACTERS = 60
_CHUNK_BYTES = 1024 * 1024
# So many messages are rendered at a time, unless they are long: one by one takes a third longer.
_BATCH_MESSAGES = 100
_BATCH_CHARACTERS = 256 * 1024


class Style:
    """How archives look: the assistant's name, the longest message (0: any), whether tool uses are shown."""

    def __init__(self, assistant: str = "Assistant", message_characters: int = 2000, with_tools: bool = False) -> None:
        self.assistant = assistant
        self.message_characters = message_characters
        self.with_tools = with_tools


class Source:
    """The transcript to archive, and what is known of its session. `group` is the agent's group, '' without groups;
    `title` what somebody called it, '' for what the transcript says."""

    def __init__(self, session_id: str, path: str, runtime: Runtime, group: str = "", title: str = "") -> None:
        self.session_id = session_id
        self.path = path
        self.runtime = runtime
        self.group = group
        self.title = title


class Written:
    """What was written: the title, times in seconds since the epoch (None if unknown), the ids of first and last."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.title = ""
        self.cwd = ""
        self.messages = 0
        self.first: float | None = None
        self.last: float | None = None
        self.first_id = ""
        self.last_id = ""
        self._ids: set[int] = set()

    def add(self, entry: Entry, *, is_new_message: bool) -> None:
        """Counts an entry that was written."""
        self.messages += is_new_message
        self.cwd = self.cwd or entry.cwd
        self.first_id = self.first_id or entry.id
        self.last_id = entry.id or self.last_id
        self._ids.add(hash(entry.id))
        if entry.timestamp is not None:
            self.first = entry.timestamp if self.first is None else self.first
            self.last = max(entry.timestamp, self.last or entry.timestamp)

    def holds(self, facts: dict[str, Any]) -> bool:
        """Whether all that the archive with these facts holds was written."""
        return {hash(facts.get("first_id")), hash(facts.get("last_id"))} <= self._ids

    def facts(self, source: Source) -> dict[str, Any]:
        """What stands in the archive's last line."""
        return {
            "session": source.session_id,
            "runtime": source.runtime.name,
            "group": source.group,
            "cwd": self.cwd,
            "first": "" if self.first is None else iso_time(self.first),
            "last": "" if self.last is None else iso_time(self.last),
            "messages": self.messages,
            "first_id": self.first_id,
            "last_id": self.last_id,
        }


def write_whole(source: Source, path: str, style: Style, now: float) -> Written:
    """Writes everything that the transcript holds to `path`. Raises OSError."""
    body = path + ".body"
    try:
        # Neither is opened a second time: whoever can write to the directory could have put a link in its place.
        with _create(body) as messages, _create(path) as file:
            written = _write_messages(source, messages, style, after=None)
            messages.seek(0)
            file.write(archive_text.header(written.title, now).encode())
            _copy(messages, file)
            file.write(archive_text.trailer(written.facts(source)).encode())
    finally:
        if os.path.lexists(body):
            os.unlink(body)
    return written


def still_holds(source: Source, facts: dict[str, Any]) -> bool:
    """Whether the transcript still has the first and the last entry of the archive with these facts. Raises OSError.

    They may be without text, and so not written: of an archive with tool uses, or from when all entries counted.
    """
    wanted = {facts.get("first_id"), facts.get("last_id")}
    descriptor = open_regular(source.path)
    try:
        entries = Reading(source.runtime, descriptor).entries()
        return wanted == {entry.id for entry in entries if entry is not None and entry.id in wanted}
    finally:
        os.close(descriptor)


def write_appended(source: Source, path: str, style: Style, now: float, archive: str, facts: dict[str, Any]) -> Written:
    """Writes to `path` what is in `archive`, and behind it what the transcript holds of later times, if anything."""
    with _create(path) as file, os.fdopen(open_regular(archive), "rb") as old:
        _copy(old, file)
        size = file.tell()
        file.seek(max(0, size - archive_text.TRAILER_BYTES))
        file.seek(size - archive_text.trailer_bytes(file.read()))
        file.truncate()
        written = _write_messages(source, file, style, after=epoch_seconds(facts.get("last")) or 0.0)
        if written.messages:
            written.messages += facts.get("messages", 0)
            written.cwd, written.first_id = facts.get("cwd", ""), facts.get("first_id", "")
            written.first = epoch_seconds(facts.get("first"))
            file.write(archive_text.trailer(written.facts(source)).encode())
    return written


def _write_messages(source: Source, file: BinaryIO, style: Style, after: float | None) -> Written:
    """Writes the messages, those later than `after` if that is given."""
    written = Written(source.session_id)
    descriptor = open_regular(source.path)
    try:
        reading = Reading(source.runtime, descriptor, with_tools=style.with_tools)
        prompt = ""
        for batch in _batches(_messages(reading.entries(), after)):
            for message in batch:
                for index, entry in enumerate(message):
                    written.add(entry, is_new_message=index == 0)
                if message and message[0].role == "user":
                    prompt = prompt or message[0].text
            file.write(_rendered(batch, style).encode("utf-8", "replace"))
    finally:
        os.close(descriptor)
    rank, title = reading.title
    if rank <= FIRST_PROMPT_RANK or not title:
        title = shorten(one_line(prompt), PROMPT_TITLE_CHARACTERS)
    written.title = for_people(source.title or title).strip() or "Conversation"
    return written


def _messages(entries: Iterable[Entry | None], after: float | None) -> Iterator[list[Entry]]:
    """The entries of each message, since one API message spans several records; an empty list for a compaction."""
    message: list[Entry] = []
    for entry in entries:
        if entry is not None and after is not None and (entry.timestamp or 0.0) <= after:
            continue
        if message and (entry is None or not entry.message_id or entry.message_id != message[0].message_id):
            yield message
            message = []
        if entry is None:
            yield []
        else:
            message.append(entry)
    if message:
        yield message


def _batches(messages: Iterable[list[Entry]]) -> Iterator[list[list[Entry]]]:
    batch: list[list[Entry]] = []
    characters = 0
    for message in messages:
        batch.append(message)
        characters += sum([len(entry.text) for entry in message])
        if len(batch) == _BATCH_MESSAGES or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    yield batch


def _rendered(messages: list[list[Entry]], style: Style) -> str:
    texts = for_storage(["\n\n".join([entry.text for entry in message if entry.text]) for message in messages])
    return "".join([part for message, text in zip(messages, texts) for part in _parts(message, text.strip(), style)])


def _parts(message: list[Entry], text: str, style: Style) -> Iterator[str]:
    """How a message with this text is rendered: its own lines and those of its tools; a line for a compaction."""
    if not message:
        yield archive_text.compaction()
    if text:
        speaker = archive_text.USER if message[0].role == "user" else style.assistant
        yield archive_text.message(speaker, text, style.message_characters)
    if style.with_tools:
        for entry in message:
            for tool in entry.tools:
                yield archive_text.message(archive_text.TOOL, _tool_line(tool), 0)


def _tool_line(tool: ToolUse) -> str:
    return shorten(one_line(for_people(f"{tool.name} {tool.argument}")), archive_text.TOOL_CHARACTERS)


def _create(path: str) -> BinaryIO:
    return os.fdopen(open_private(path, os.O_RDWR | os.O_TRUNC), "w+b", buffering=_CHUNK_BYTES)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while block := source.read(_CHUNK_BYTES):
        target.write(block)
