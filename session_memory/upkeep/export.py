"""Export conversations as Markdown or JSON (web/export.py: as HTML) as a stream: only part of a conversation is in
memory. Pure. docs/inside/store.md documents the JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ..archives.format import TOOL, ArchivedMessage, asked, in_batches, render_messages
from ..store.values import TOOL_ROLE, Conversation, StoredEntry
from ..text.format import counted, one_line
from ..text.markdown import escape
from ..text.sanitize import for_people, for_storage
from ..text.timestamps import iso_time, local_time

JSON_VERSION = 1
ASSISTANT = "Assistant"
WITHHELD = "[the rules in config.yaml hide the text]"
_BACKTICKS = re.compile("`+")


class ExportFormat:
    """The text of an export. The methods are called in this order, those about a conversation once for each."""

    def begin(self, now: int, full: bool, title: str) -> str:
        """Return the text before all conversations, of the common `title` ('' for none), at `now` in milliseconds."""
        return ""

    def conversation(self, conversation: Conversation, is_told: bool) -> str:
        """Return the text before the items of a conversation; without `is_told` the items must not be shown."""
        raise NotImplementedError

    def items(self, items: list[StoredEntry]) -> str:
        """Return the text of some of its items."""
        raise NotImplementedError

    def end_of_conversation(self) -> str:
        """Return the text after its last item."""
        return "\n"

    def end(self) -> str:
        """Return the text after all conversations."""
        return ""


def export(
    form: ExportFormat, conversations: Iterable[Conversation], entries: Callable[[int], Iterator[StoredEntry]],
    now: int, *, full: bool, title: str = "",
) -> Iterator[str]:  # fmt: skip
    """Yield the export of conversations. `entries` returns a conversation's items by its id: messages and, if `full`,
    tool calls with their outcome. `title` is the session's, if all conversations are of one."""
    yield form.begin(now, full, for_people(title))
    for conversation in conversations:
        items = entries(conversation.id)
        first = next(items, None)
        safe = conversation._replace(title=for_people(conversation.title), cwd=for_people(conversation.cwd))
        yield form.conversation(safe, first is not None)
        wanted = (one for one in chain([first] if first else [], items) if full or one.role != TOOL_ROLE)
        for batch in in_batches(_joined(wanted), lambda one: len(one.text)):  # redacted: a rule may be new since
            yield form.items([one._replace(text=for_storage(one.text), error=for_storage(one.error)) for one in batch])
        yield form.end_of_conversation()
    yield form.end()


def _joined(items: Iterable[StoredEntry]) -> Iterator[StoredEntry]:
    """Yield the items, joining consecutive texts of one API message."""
    last: StoredEntry | None = None
    for item in items:
        if last and item.message and (item.message, item.role) == (last.message, last.role) and item.role != TOOL_ROLE:
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
    return one_line(conversation.title) or f"Conversation {conversation.id}"


def facts_of(conversation: Conversation) -> dict[str, str]:
    """Return a conversation's known properties, by their labels for people."""
    times = [at for at in (conversation.first_message_at, conversation.last_message_at) if at is not None]
    return {
        "Session": f"{conversation.session_id} ({conversation.runtime})",
        "Directory": one_line(conversation.cwd) or "-",
        "Time": " to ".join(dict.fromkeys(local_time(at / 1000) for at in times)) or "-",
        "Messages": f"{conversation.entry_count:,}",
    }


class MarkdownExport(ExportFormat):
    """Each conversation under its own heading, with messages as in archives."""

    def conversation(self, conversation: Conversation, is_told: bool) -> str:
        facts = {name: escape(fact) if "`" in fact else f"`{fact}`" for name, fact in facts_of(conversation).items()}
        listed = "\n".join([f"- {name}: {fact}" for name, fact in facts.items()])
        withheld = "" if is_told else f"\n{escape(WITHHELD)}\n"
        return f"# {escape(title_of(conversation))}\n\n{listed}\n\n---\n{withheld}"

    def items(self, items: list[StoredEntry]) -> str:
        return "".join(render_messages([_message(one) for one in items], ASSISTANT, 0))


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
        return "\n\n".join([item.tool, f"{fence}\n{argument}\n{fence}", *([outcome] if outcome else [])])
    shown = f"{item.tool} `{argument}`" if argument.strip() else item.tool
    return f"{shown}: {outcome}" if outcome else shown


class JsonExport(ExportFormat):
    """One JSON object; each conversation, and each item, begins a line."""

    def __init__(self) -> None:
        self._has_conversations = False
        self._has_items = False

    def begin(self, now: int, full: bool, title: str) -> str:
        head = {"format": "session-memory export", "version": JSON_VERSION, "exported_at": _iso(now), "full": full}
        return f'{_encoded(head)[:-1]}, "conversations": ['

    def conversation(self, conversation: Conversation, is_told: bool) -> str:
        head = {
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
        }
        separator = "," if self._has_conversations else ""
        self._has_conversations, self._has_items = True, False
        return f'{separator}\n{_encoded(head)[:-1]}, "items": ['

    def items(self, items: list[StoredEntry]) -> str:
        separator = "," if self._has_items else ""
        self._has_items = True
        return separator + ",".join([f"\n{_encoded(_item(one))}" for one in items])

    def end_of_conversation(self) -> str:
        return "\n]}"

    def end(self) -> str:
        return "\n]}\n"


def _item(item: StoredEntry) -> dict[str, Any]:
    common = {"number": item.number, "role": item.role, "time": _iso(item.timestamp), "directory": item.cwd}
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


def _encoded(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


FORMATS: dict[str, Callable[[], ExportFormat]] = {"markdown": MarkdownExport, "json": JsonExport}
