"""The messages of a conversation for its archive: redacted, without what was forgotten, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..text.sanitize import for_storage, shortened
from ..transcripts.entries import Entry, ToolUse
from ..transcripts.gate import Gate
from .format import TOOL, TOOL_CHARACTERS, ArchivedMessage, asked, render_compaction, render_messages

# So many messages are rendered at a time, unless they are long: one by one takes a third longer.
_BATCH_MESSAGES = 100
_BATCH_CHARACTERS = 256 * 1024


class ArchiveStyle:
    """The style of an archive: the assistant's name, the longest message in characters (0: any), if tools are shown."""

    def __init__(self, assistant: str = "Assistant", message_characters: int = 0, with_tools: bool = False) -> None:
        self.assistant = assistant
        self.message_characters = message_characters
        self.with_tools = with_tools


class RememberedEntries:
    """The entries of a transcript, with None for each compaction, without what its `gate` knows as forgotten. After the
    last entry, `has_forgotten` says if any was."""

    def __init__(self, entries: Iterable[Entry | None], gate: Gate | None) -> None:
        self._entries = entries
        self._gate = gate
        self.has_forgotten = False

    def __iter__(self) -> Iterator[Entry | None]:
        if self._gate is None or self._gate.until is None:
            yield from self._entries
            return
        has_begun = False
        for entry in self._entries:
            if entry is not None and self._gate.is_forgotten(entry):
                self.has_forgotten = True
            elif entry is not None or has_begun:
                has_begun = True
                yield entry


def batches(entries: Iterable[Entry | None], after: float | None) -> Iterator[list[list[Entry]]]:
    """Yield the messages of a conversation in batches, only those later than `after` if given. A message is a list of
    entries, since one API message spans several records; an empty list is a compaction."""
    batch: list[list[Entry]] = []
    characters = 0
    for message in _messages(entries, after):
        batch.append(message)
        characters += sum([len(entry.text) for entry in message])
        if len(batch) == _BATCH_MESSAGES or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    yield batch


def _messages(entries: Iterable[Entry | None], after: float | None) -> Iterator[list[Entry]]:
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


def said_in(messages: list[list[Entry]], style: ArchiveStyle) -> list[ArchivedMessage]:
    """Return each message as it is archived: its redacted text, and its tool uses if they are shown."""
    texts = for_storage(["\n\n".join([entry.text for entry in message if entry.text]) for message in messages])
    said = []
    for message, text in zip(messages, texts):
        if not message:
            said.append(ArchivedMessage("", ""))
            continue
        if text := text.strip():
            speaker, text = asked(text) if message[0].role == "user" else (style.assistant, text)
            said.append(ArchivedMessage(speaker, text, message[0].timestamp))
        if style.with_tools:
            said += [ArchivedMessage(TOOL, _tool_line(tool), e.timestamp) for e in message for tool in e.tools]
    return said


def rendered(said: list[ArchivedMessage], style: ArchiveStyle) -> str:
    """Return the Markdown of these; a line for a compaction."""
    messages = iter(render_messages([one for one in said if one.speaker], style.assistant, style.message_characters))
    return "".join([next(messages) if one.speaker else render_compaction() for one in said])


def _tool_line(tool: ToolUse) -> str:
    return shortened(f"{tool.name} {tool.argument}", TOOL_CHARACTERS)
