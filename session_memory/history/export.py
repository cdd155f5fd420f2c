"""Exports conversations as a stream of Markdown or JSON. Pure.

Only a part of a conversation is in memory. docs/inside/store.md documents the JSON."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..common.text.format import counted, one_line
from ..common.text.markdown import escape
from ..common.text.sanitize import for_people, for_storage, name_for_people
from ..common.text.timestamps import iso_time, local_time
from ..sessions.settings.sections import Filtering
from .archives.format import TOOL, ArchivedMessage, asked, in_batches, render_messages
from .filtering import filtered_entry
from .marks import NO_MARKS, Marks, SessionMarks
from .recorded import RecordedDetails
from .store.location import StoreLocation
from .store.values import TOOL_ROLE, Conversation, StoredEntry

JSON_VERSION = 1
ASSISTANT = "Assistant"
WITHHELD = "[the rules in config.yaml hide the text]"
_BACKTICKS = re.compile("`+")


class ExportHead(NamedTuple):
    """The facts about an export.

    They are its time in milliseconds since 1970, whether it is `full`, the `title` of its only
    session ('' for several), and the `location` of the store (None: do not read transcripts)."""

    now: int
    full: bool
    title: str
    location: StoreLocation | None = None


class Exported(NamedTuple):
    """A conversation to export.

    Unless it `is_told`, its items must not be shown and are left out."""

    conversation: Conversation
    is_told: bool
    batches: Iterator[list[StoredEntry]]
    marks: SessionMarks = NO_MARKS


Form = Callable[[Iterable[Exported], ExportHead], Iterator[str]]


def export(
    form: Form,
    conversations: Iterable[Conversation],
    entries: Callable[[int], Iterator[StoredEntry]],
    head: ExportHead,
) -> Iterator[str]:
    """Return the export of conversations as pieces of text.

    `entries` returns a conversation's items by its id: messages and, if the export is full, tool
    calls with their outcome."""
    redacted = head._replace(title=for_people(head.title))
    marks = Marks.read(head.location.home) if head.location else Marks()
    return form(_exported(conversations, entries, head.full, marks), redacted)


def _exported(
    conversations: Iterable[Conversation],
    entries: Callable[[int], Iterator[StoredEntry]],
    full: bool,
    marks: Marks,
) -> Iterator[Exported]:
    for conversation in conversations:
        items = entries(conversation.id)
        first = next(items, None)
        safe = conversation._replace(
            session_id=name_for_people(conversation.session_id),
            title=for_people(conversation.title),
            cwd=for_people(conversation.cwd),
        )
        wanted = (
            entry
            for entry in chain([first] if first else [], items)
            if full or entry.role != TOOL_ROLE
        )
        batches = in_batches(map(_redacted, _joined(wanted)), lambda entry: len(entry.text))
        of_session = marks.of((conversation.home, conversation.session_id))
        yield Exported(safe, first is not None, batches, of_session)


def _redacted(item: StoredEntry) -> StoredEntry:
    """Return an item, redacted by the current rules, which may be newer than the stored item."""
    return item._replace(text=for_storage(item.text), error=for_storage(item.error))


def _joined(items: Iterable[StoredEntry]) -> Iterator[StoredEntry]:
    """Yield the items, joining consecutive texts of one API message."""
    last: StoredEntry | None = None
    for item in items:
        if (
            last
            and item.message
            and (item.message, item.role) == (last.message, last.role)
            and item.role != TOOL_ROLE
        ):
            last = last._replace(text=f"{last.text}\n\n{item.text}")
            continue
        if last:
            yield last
        last = item
    if last:
        yield last


def _outcome(item: StoredEntry) -> str:
    """Return `ok, 3 lines`, `error: 3 failed`; '' if unknown."""
    if item.outcome == "error":
        return f"error: {one_line(item.error)}" if item.error else "error"
    if item.outcome and item.result_lines:
        return f"{item.outcome}, {counted(item.result_lines, 'line')}"
    return item.outcome


def title_of(conversation: Conversation) -> str:
    """Return the title of a conversation on one line, or its number if it has none."""
    return one_line(conversation.title) or f"Conversation {conversation.id}"


def facts_of(exported: Exported) -> dict[str, str]:
    """Return a conversation's known properties, by their labels for people."""
    conversation, marks = exported.conversation, exported.marks
    times = [
        at for at in (conversation.first_message_at, conversation.last_message_at) if at is not None
    ]
    return {
        "Session": f"{conversation.session_id} ({conversation.runtime})",
        "Directory": one_line(conversation.cwd) or "-",
        "Time": " to ".join(dict.fromkeys(local_time(at / 1000) for at in times)) or "-",
        "Messages": f"{conversation.entry_count:,}",
        **({"Labels": ", ".join(marks.labels)} if marks.labels else {}),
        **({"Pinned": local_time(marks.pinned_at)} if marks.pinned_at else {}),
    }


def as_markdown(exported: Iterable[Exported], head: ExportHead) -> Iterator[str]:
    """Yield each conversation under its own heading, with messages as in archives."""
    for each in exported:
        conversation, is_told, batches, _ = each
        facts = {
            name: escape(fact) if "`" in fact else f"`{fact}`"
            for name, fact in facts_of(each).items()
        }
        listed = "\n".join([f"- {name}: {fact}" for name, fact in facts.items()])
        withheld = "" if is_told else f"\n{escape(WITHHELD)}\n"
        yield f"# {escape(title_of(conversation))}\n\n{listed}\n\n---\n{withheld}"
        for items in batches:
            yield "".join(render_messages([_message(item) for item in items], ASSISTANT, 0))
        yield "\n"


def _message(item: StoredEntry) -> ArchivedMessage:
    at = None if item.timestamp is None else item.timestamp / 1000
    if item.role == TOOL_ROLE:
        return ArchivedMessage(TOOL, _tool_text(item), at)
    speaker, text = asked(item.text) if item.role == "user" else (ASSISTANT, item.text)
    return ArchivedMessage(speaker, text.strip(), at)


def _tool_text(item: StoredEntry) -> str:
    """Return a tool call: the tool's name, its argument as code, and the outcome."""
    argument = item.text.strip("\n")
    longest = max(map(len, _BACKTICKS.findall(argument)), default=0)
    outcome = _outcome(item)
    if "\n" in argument or longest:
        fence = "`" * max(3, longest + 1)
        return "\n\n".join(
            [item.tool, f"{fence}\n{argument}\n{fence}", *([outcome] if outcome else [])]
        )
    shown = f"{item.tool} `{argument}`" if argument.strip() else item.tool
    return f"{shown}: {outcome}" if outcome else shown


def as_json(exported: Iterable[Exported], head: ExportHead) -> Iterator[str]:
    """Yield one JSON object, with each conversation and each item at the beginning of a line."""
    about = {
        "format": "session-memory export",
        "version": JSON_VERSION,
        "exported_at": _iso(head.now),
    }
    yield f'{_opened({**about, "full": head.full})}, "conversations": ['
    for number, (conversation, is_told, batches, marks) in enumerate(exported):
        facts = {
            "id": conversation.id,
            "session_id": conversation.session_id,
            "runtime": conversation.runtime,
            "group_name": conversation.home,
            "title": conversation.title,
            "directory": conversation.cwd,
            "started_at": _iso(conversation.first_message_at),
            "ended_at": _iso(conversation.last_message_at),
            "messages": conversation.entry_count,
            "status": conversation.status,
            "is_told": is_told,
            "labels": list(marks.labels),
            "pinned_at": _iso(marks.pinned_at * 1000 or None),
        }
        yield f'{"," if number else ""}\n{_opened(facts)}, "items": ['
        separator = ""
        for items in batches:
            yield separator + ",".join(
                [f"\n{json.dumps(_item(item), ensure_ascii=False)}" for item in items]
            )
            separator = ","
        yield "\n]}"
    yield "\n]}\n"


def as_filtered(
    exported: Iterable[Exported], filtering: Filtering, location: StoreLocation | None
) -> Iterator[str]:
    """Yield each conversation in the form that a model reads, by the settings.

    Without a `location`, the form lacks content that only transcripts have, and has prompts that a
    person took back by rewinding."""
    for conversation, is_told, batches, _ in exported:
        withheld = "" if is_told else f"{WITHHELD}\n"
        rewound = location.rewound_offsets(conversation) if location is not None else ()
        yield f"# {title_of(conversation)}\n\n{withheld}"
        before: list[StoredEntry] = []
        for items in batches:
            details = None
            if location is not None:  # a batch may begin within a record
                begun = [item for item in before if item.offset == items[0].offset]
                read = [*begun, *items]
                details = RecordedDetails.read(location, filtering, conversation, read)
            before = items
            stood = [item for item in items if item.offset not in rewound]
            lines = [filtered_entry(item, filtering, details) for item in stood]
            yield "".join([f"{line}\n" for line in lines if line])
        yield "\n"


def _opened(value: dict[str, Any]) -> str:
    """Return an object as JSON without its last brace."""
    return json.dumps(value, ensure_ascii=False)[:-1]


def _item(item: StoredEntry) -> dict[str, Any]:
    common = {
        "number": item.number,
        "role": item.role,
        "time": _iso(item.timestamp),
        "directory": item.cwd,
    }
    if item.role != TOOL_ROLE:
        return {**common, "text": item.text}
    return {
        **common,
        "tool": item.tool,
        "kind": item.kind,
        "argument": item.text,
        "outcome": item.outcome or None,
        "error": item.error or None,
        "result_characters": item.result_size,
        "result_lines": item.result_lines,
    }


def _iso(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso_time(milliseconds / 1000)
