"""An archive as Markdown: title, time of archiving, messages, and a last line for programs.

Pure.
"""

# An example:
#
#     # Travel Planning
#
#     Archived: Feb 21, 3:39 AM
#
#     ---
#
#     **User** (2026-02-21 03:21:40+01:00): I want to plan a trip to Japan...
#
#     **G2** (2026-02-21 03:21:55+01:00): Here are some suggestions...
#
#     <!-- session-memory {"session": "d58a79a7-...", "runtime": "agent-sdk", ...} -->

import json
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from ...common.system.json import as_string
from ...common.text.format import ELLIPSIS, shorten, words_of
from ...common.text.markdown import begins_a_block, escape, escape_all, fence_around, unescape
from ...common.text.sanitize import all_for_people, shortened
from ...common.text.timestamps import epoch_seconds, local_iso_time
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.gate import Gate

T = TypeVar("T")

USER, TASK, TOOL = "User", "Task", "Tool"
ASKING = (USER, TASK)  # speakers whose messages an agent answers
# The beginning of a prompt with which a host starts a task; an archive has only the task's text.
TASK_INTRODUCTION = (
    "[A scheduled task: nobody has just written this. What you answer goes to the chat.]"
)
# beside the name that an agent is given
NAMES_OF_SPEAKERS = (USER, TASK, TOOL, "Assistant", "Human", "Claude")
COMPACTED = "*Compacted here: from now on the agent knew what came before as a summary.*"
TITLE_CHARACTERS = 80
TOOL_CHARACTERS = 120
SLUG_CHARACTERS = 60
# a file name has at most 255 bytes, some of them for the date, a number and the suffix
SLUG_BYTES = 200
TRAILER_BYTES = 16 * 1024  # a directory in it may have 4 KB, and more when escaped

_SEPARATORS = {False: " ", True: "\n\n"}  # a block must begin a line
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TRAILER_START = b"\n<!-- session-memory "
_TRAILER = re.compile(r"<!-- session-memory (\{.*\}) -->")
_SPEAKER = re.compile(
    r"\*\*([^*]{1,80})\*\*(?: \((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d)\))?:(?: (.*))?$"
)
# in the year 9892; times of messages are between 1970 and this time
_LATEST = 250_000_000_000.0


class ArchivedMessage(NamedTuple):
    """A message and its time in seconds since 1970.

    `speaker` and `text` are '' for a compaction."""

    speaker: str
    text: str
    at: float | None = None


def render_header(title: str, archived: float) -> str:
    """Return the lines before the first message, with `archived` in local time.

    `archived` is in seconds since 1970."""
    at = time.localtime(archived)
    clock = f"{at.tm_hour % 12 or 12}:{at.tm_min:02} {'AM' if at.tm_hour < 12 else 'PM'}"
    when = f"{_MONTHS[at.tm_mon - 1]} {at.tm_mday}, {clock}"
    return f"# {escape(title)}\n\nArchived: {when}\n\n---\n"


def title_in(first_line: str) -> str:
    """Return the title in the first line of an archive."""
    return unescape(first_line.strip().removeprefix("# "))


def asked(text: str) -> tuple[str, str]:
    """Return the speaker and text of a message to an agent: a user's, or a task's."""
    if text.startswith(TASK_INTRODUCTION):
        return TASK, text[len(TASK_INTRODUCTION) :].lstrip()
    return USER, text


def render_messages(messages: list[ArchivedMessage], assistant: str, limit: int) -> list[str]:
    """Return the paragraphs of each message.

    A message is cut after `limit` characters (0: never), with a note."""
    texts = [
        _cut(message.text, limit) if limit and message.speaker != TOOL else message.text
        for message in messages
    ]
    escaped = escape_all(texts, (*NAMES_OF_SPEAKERS, assistant))
    return [
        _paragraphs(message, text, shown) for message, text, shown in zip(messages, texts, escaped)
    ]


def _paragraphs(message: ArchivedMessage, text: str, escaped: str) -> str:
    when = (
        f" ({local_iso_time(message.at)})"
        if message.at is not None and 0 <= message.at < _LATEST
        else ""
    )
    return f"\n**{message.speaker}**{when}:{_SEPARATORS[begins_a_block(text)]}{escaped}\n"


def _cut(text: str, limit: int) -> str:
    """Return about the first `limit` characters, and the number of further ones.

    Fenced code stays fenced."""
    if len(text) <= limit:
        return text
    kept = shorten(text, limit)
    left_out = len(text) - len(kept) + len(ELLIPSIS)
    fence = fence_around(text, len(kept))
    end_of_code = f"\n{fence}" if fence else ""
    return f"{kept}{end_of_code}\n\n[{left_out:,} more characters]"


def render_trailer(facts: dict[str, Any]) -> str:
    """Return the last line.

    Angle brackets in its JSON are escaped, so nothing in it can end the comment."""
    content = json.dumps(facts, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"\n<!-- session-memory {content} -->\n"


def facts_in(end_of_archive: str) -> dict[str, Any] | None:
    """Return the facts in the last line; None if the file is not an archive."""
    content = end_of_archive.rstrip()
    trailer = _TRAILER.fullmatch(content, content.rfind("\n") + 1)
    if trailer is None or end_of_archive[len(content) :][:1] not in ("", "\n"):
        return None
    try:
        facts = json.loads(trailer[1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or not isinstance(facts.get("session"), str):
        return None
    return {
        name: as_string(fact) if isinstance(fact, str) else fact for name, fact in facts.items()
    }


def trailer_bytes(end_of_archive: bytes) -> int:
    """Return the size in bytes of an archive's last line, including the line feed before it."""
    return len(end_of_archive) - end_of_archive.rfind(_TRAILER_START)


def messages_in(archive: str) -> Iterator[ArchivedMessage]:
    """Yield the messages and compactions of an archive; `at` is None if it has no times."""
    body = archive.partition("\n---\n")[2]
    last = body.rfind("\n<!-- session-memory ")
    speaker, when, collected = "", None, [""]
    for line in (body if last < 0 else body[:last]).split("\n"):
        heading = _SPEAKER.match(line)
        if heading is None and line != COMPACTED:
            collected.append(line)
            continue
        if speaker:
            yield ArchivedMessage(speaker, unescape("\n".join(collected).strip("\n")), when)
        if heading is None:
            speaker = ""
            yield ArchivedMessage("", "")
        else:
            speaker, when, collected = heading[1], epoch_seconds(heading[2]), [heading[3] or ""]
    if speaker:
        yield ArchivedMessage(speaker, unescape("\n".join(collected).strip("\n")), when)


def slug(title: str) -> str:
    """Return `title` for a file name: its words in lower case, joined by hyphens; '' without words.

    The words may be in any script."""
    words = words_of(unicodedata.normalize("NFC", title).lower())
    joined = ""
    for word in words:
        longer = f"{joined}-{word}" if joined else word
        if len(longer) > SLUG_CHARACTERS or len(longer.encode("utf-8", "replace")) > SLUG_BYTES:
            break
        joined = longer
    cut = words[0][:SLUG_CHARACTERS].encode("utf-8", "replace")[:SLUG_BYTES] if words else b""
    return joined or cut.decode("utf-8", "ignore")


# Messages are rendered in groups of this size, unless they are long; one by one takes a third
# longer.
_BATCH_ITEMS = 100
_BATCH_CHARACTERS = 256 * 1024


class ArchiveStyle(NamedTuple):
    """The style of an archive.

    It has the assistant's name, the longest message in characters (0: any), and whether tools and
    times are shown."""

    assistant: str = "Assistant"
    message_characters: int = 0
    with_tools: bool = False
    with_times: bool = True


class RememberedEntries:
    """The entries of a transcript without forgotten ones, with None for each compaction.

    Its `gate` detects forgotten entries. After the last entry, `has_forgotten` tells if there were
    any."""

    def __init__(self, entries: Iterable[Entry | None], gate: Gate | None) -> None:
        self._entries = entries
        self._gate = gate
        self.has_forgotten = False

    def __iter__(self) -> Iterator[Entry | None]:
        if self._gate is None or not self._gate.may_forget:
            yield from self._entries
            return
        has_begun = False
        for entry in self._entries:
            if entry is not None and self._gate.is_forgotten(entry):
                self.has_forgotten = True
            elif entry is not None or has_begun:
                has_begun = True
                yield entry


def in_batches(items: Iterable[T], characters: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield items in batches of a hundred, fewer if they have many `characters`."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += characters(item)
        if len(batch) == _BATCH_ITEMS or size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def batches(
    entries: Iterable[Entry | None], is_new: Callable[[Entry], bool]
) -> Iterator[list[list[Entry]]]:
    """Return the new messages of a conversation, in batches, each with only its new entries.

    A message is a list of entries, because one API message spans several records; an empty list is
    a compaction."""
    return in_batches(
        _messages(entries, is_new), lambda message: sum([len(entry.text) for entry in message])
    )


def _messages(
    entries: Iterable[Entry | None], is_new: Callable[[Entry], bool]
) -> Iterator[list[Entry]]:
    message: list[Entry] = []
    for entry in entries:
        if entry is not None and not is_new(entry):
            continue
        if message and (
            entry is None or not entry.message_id or entry.message_id != message[0].message_id
        ):
            yield message
            message = []
        if entry is None:
            yield []
        else:
            message.append(entry)
    if message:
        yield message


def said_in(messages: list[list[Entry]], style: ArchiveStyle) -> list[ArchivedMessage]:
    """Return the archived form of each message: redacted text, and tool uses if they are shown."""
    said = []
    texts = all_for_people(
        ["\n\n".join([entry.text for entry in message if entry.text]) for message in messages]
    )
    for message, text in zip(messages, map(str.strip, texts)):
        if not message:
            said.append(ArchivedMessage("", ""))
            continue
        if text:
            speaker, text = asked(text) if message[0].role == "user" else (style.assistant, text)
            said.append(ArchivedMessage(speaker, text, message[0].timestamp))
        if style.with_tools:
            said += [
                ArchivedMessage(
                    TOOL,
                    shortened(f"{tool.name} {tool.argument}", TOOL_CHARACTERS),
                    entry.timestamp,
                )
                for entry in message
                for tool in entry.tools
            ]
    return said


def rendered(said: list[ArchivedMessage], style: ArchiveStyle) -> str:
    """Return the Markdown of these messages; a compaction is one line."""
    messages = iter(
        render_messages(
            [
                message if style.with_times else message._replace(at=None)
                for message in said
                if message.speaker
            ],
            style.assistant,
            style.message_characters,
        )
    )
    return "".join([next(messages) if message.speaker else f"\n{COMPACTED}\n" for message in said])
