"""Reads text from the store for `read`: a conversation, the part around a message, or a memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_people, for_prompt, name_for_people
from ...history.store.values import TOOL_ROLE, Conversation, StoredEntry
from ._messages_view import print_message, print_tool_use
from .arguments import AROUND, MESSAGE_CHARACTERS, NO_LIMIT
from .opened_store import (
    OpenStore,
    last_conversation,
    on_store,
    options_of,
    unless_absent,
)
from .output import fields, moment

ARGUMENT_CHARACTERS = 120
_ROLES = {"user": "User", "assistant": "Assistant"}
Lookup = Callable[[OpenStore, argparse.Namespace], Result | None]


@on_store
def read_conversation(opened: OpenStore, arguments: argparse.Namespace) -> int:
    """Print the conversation or memory that the arguments name, and return the exit code."""
    result: Result | None = numbered(opened, arguments)
    if result is None and not arguments.around:
        result = memory(opened, arguments) or last(opened, arguments)
    if result is None:
        hint = "session-memory sessions --conversations --all lists them"
        raise SessionMemoryError(f"there is no conversation {arguments.name}", hint)
    opened.terminal.show(result)
    return 0


def find(lookup: Lookup, arguments: argparse.Namespace) -> Result | None:
    """Return what a lookup finds in the store; None if there is nothing, or no store."""
    return unless_absent(arguments, lambda opened: lookup(opened, arguments))


def numbered(opened: OpenStore, arguments: argparse.Namespace) -> ShownConversation | None:
    """Return the conversation whose number is given."""
    word = arguments.name
    number = min(int(word[:12]), NO_LIMIT**2) if word.isdecimal() else 0
    conversation = opened.store.conversation(number) if number else None
    return _shown(opened, arguments, conversation) if conversation else None


def memory(opened: OpenStore, arguments: argparse.Namespace) -> Result | None:
    """Return the memory whose id, or a unique beginning of it, is given."""
    from ...memory.session_ids import memory_called

    if opened.shared:
        return None
    named = memory_called(opened.location, opened.note, opened.patience, arguments.name)
    if named is None:
        return None
    from .memories import whole_memories

    return whole_memories(opened, [named], options_of(arguments))


def last(opened: OpenStore, arguments: argparse.Namespace) -> ShownConversation | None:
    """Return the last conversation of the session that is given.

    Raises AmbiguousSessionError."""
    conversation = last_conversation(opened, arguments.name)
    return _shown(opened, arguments, conversation) if conversation else None


def _shown(
    opened: OpenStore, arguments: argparse.Namespace, conversation: Conversation
) -> ShownConversation:
    entries = list(opened.store.entries(conversation.id))
    shown, before, after = _part(entries, arguments.around, arguments.lines)
    return ShownConversation(conversation, shown, before, after, arguments)


@dataclass(frozen=True)
class ShownConversation(Result):
    """A conversation with the shown entries, and the numbers of entries before and after them.

    `options` are the arguments of the command."""

    conversation: Conversation
    entries: list[StoredEntry]
    before: int
    after: int
    options: argparse.Namespace

    def show(self, terminal: Terminal) -> None:
        with terminal.paged():
            _print_head(terminal, self.conversation)
            if not self.entries:
                terminal.line("\n[the rules in config.yaml hide the text]")
            if self.before:
                terminal.line(f"\n[{counted(self.before, 'earlier item')}]")
            _print_items(terminal, self.entries, self.options)
            if self.after:
                terminal.line(f"\n[{counted(self.after, 'later item')}]")

    def as_json(self) -> dict[str, Any]:
        return {
            "conversation": fields(self.conversation),
            "entries": [{"number": entry.number, **fields(entry)} for entry in self.entries],
            "before": self.before,
            "after": self.after,
        }


def _part(
    entries: list[StoredEntry], around: int | None, lines: int | None
) -> tuple[list[StoredEntry], int, int]:
    """Return the entries to show, and how many precede and follow them.

    Raises SessionMemoryError."""
    if around is None:
        before = max(0, len(entries) - lines) if lines else 0
        return entries[before:], before, 0
    lines = lines or AROUND
    at = next((index for index, entry in enumerate(entries) if entry.number == around), None)
    if at is None:
        raise SessionMemoryError(
            f"there is no message {around} in this conversation", "search shows their numbers"
        )
    first, last = max(0, at - lines), min(len(entries), at + lines + 1)
    return entries[first:last], first, len(entries) - last


def _print_head(terminal: Terminal, conversation: Conversation) -> None:
    title = for_prompt(conversation.title)
    terminal.line(
        terminal.paint(
            "bold", shorten(one_line(title), terminal.width) or f"Conversation {conversation.id}"
        )
    )
    first, last = moment(conversation.first_message_at), moment(conversation.last_message_at)
    when = first if first == last else f"{first} to {last}"
    terminal.line(
        f"Conversation {conversation.id}, {counted(conversation.entry_count, 'message')}, {when}"
    )
    whose = f" of {for_people(conversation.who)}" if conversation.who else ""
    whose += f", {for_people(conversation.origin)}" if conversation.origin else ""
    session, where = map(name_for_people, (conversation.session_id, conversation.cwd or "-"))
    terminal.line(f"Session {session}{whose} ({conversation.runtime}) in {where}")


def _print_items(
    terminal: Terminal, shown: list[StoredEntry], arguments: argparse.Namespace
) -> None:
    previous = (0, "")
    for entry in shown:
        text = for_prompt(entry.text)
        if entry.role == TOOL_ROLE:
            print_tool_use(terminal, _tool_line(entry, text, for_prompt(entry.error)))
            continue
        if (entry.message, entry.role) != previous:
            speaker = terminal.paint("bold", _ROLES[entry.role])
            mark = " <-" if entry.number == arguments.around else ""
            terminal.line(
                f"\n{speaker} "
                f"{terminal.paint('dim', f'{moment(entry.timestamp)} #{entry.number}{mark}')}"
            )
        previous = (entry.message, entry.role)
        kept = text if arguments.full else shorten(text, MESSAGE_CHARACTERS)
        print_message(terminal, kept, is_user_s=entry.role == "user")
        if kept != text:
            terminal.line(f"[{len(text) - len(kept) + 1:,} more characters: --full]")


def _tool_line(entry: StoredEntry, argument: str, error: str) -> str:
    """Return a line such as `- Bash npm test: error: Exit code 1: 3 failed`."""
    outcome = entry.outcome
    if entry.outcome == "error":
        outcome = f"error: {one_line(error)}" if error else "error"
    elif entry.outcome and entry.result_lines:
        outcome = f"{entry.outcome}, {counted(entry.result_lines, 'line')}"
    line = (
        f"- {one_line(for_prompt(entry.tool))} {shorten(one_line(argument), ARGUMENT_CHARACTERS)}"
    ).rstrip()
    return f"{line}: {outcome}" if outcome else line
