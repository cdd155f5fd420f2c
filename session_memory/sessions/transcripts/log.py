"""The last entries of a transcript, and how they read as a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...common.system.files import Opened
from ...common.text.format import counted
from ...common.text.paths import relative
from ...common.text.sanitize import for_people, shortened
from ...common.text.timestamps import local_time
from ..runtimes.base import Runtime
from .entries import Entry, ToolUse
from .gate import Gate
from .lines import first_line
from .reader import TranscriptReader

ARGUMENT_CHARACTERS = 200
NAMED_FILES = 3


def last_entries(
    runtime: Runtime, path: str, count: int, gate: Gate | None, *, counts_said: bool = False
) -> tuple[list[Entry], int]:
    """Return the last `count` entries of a file that its `gate` permits, and the unreadable count.

    The entries are in file order, each id once. Without a gate (for a participant of the session)
    all are permitted. With `counts_said` only entries with text are counted. Reads from the end, so
    the size of the file does not matter. Raises OSError."""
    if gate is not None and gate.rule.ignore:
        return [], 0
    latest: list[Entry] = []
    ids: set[str] = set()
    counted_so_far = 0
    with Opened(path) as descriptor:
        reader = TranscriptReader(runtime, first_line(descriptor))
        for entry in reader.from_end(descriptor):
            if entry.id and entry.id in ids:
                continue
            ids.add(entry.id)
            # so is everything before it
            if gate is not None and gate.is_of_forgotten_time(entry):
                break
            permitted = [entry] if gate is None else gate.told([entry])
            latest += permitted
            counted_so_far += sum([bool(shown.text) or not counts_said for shown in permitted])
            if counted_so_far >= count:
                break
        return latest[::-1], reader.unreadable


def has_entries(runtime: Runtime, path: str, gate: Gate) -> bool:
    """Check if a transcript has an entry that may be shown. An unreadable one has none."""
    try:
        return bool(last_entries(runtime, path, 1, gate)[0])
    except OSError:
        return False


def _folded(entries: list[Entry]) -> list[Entry]:
    """Return the entries with the tool uses of each run merged into the message before them."""
    merged: list[Entry] = []
    for entry in entries:
        if (
            merged
            and entry.tools
            and not entry.text
            and entry.role == "assistant" == merged[-1].role
        ):
            merged[-1] = merged[-1].with_tools((*merged[-1].tools, *entry.tools))
        else:
            merged.append(entry)
    return merged


def _summary_of_tools(tools: Sequence[ToolUse]) -> str:
    """Return tool uses as `[5 tool uses: Edit cart.ts, mail.ts; Bash 2, Read]`."""
    edited = list(
        dict.fromkeys([tool.argument.rpartition("/")[2] for tool in tools if tool.kind == "edit"])
    )
    names = [tool.name for tool in tools if tool.kind != "edit"]
    parts = [f"edited {', '.join(edited[:NAMED_FILES])}"] if edited else []
    parts[:1] = (
        [f"{parts[0]} and {len(edited) - NAMED_FILES} more"]
        if len(edited) > NAMED_FILES
        else parts[:1]
    )
    counts = {name: names.count(name) for name in names}
    parts += [
        ", ".join([f"{name} {number}" if number > 1 else name for name, number in counts.items()])
    ]
    return f"[{counted(len(tools), 'tool use')}: {'; '.join(filter(None, parts))}]"


class LogBlock(NamedTuple):
    """A part of a log: a line with the time and speaker, the message, and a line per tool use.

    The head is '' if the part continues a message. `is_user_s` tells who wrote the text."""

    head: str
    text: str
    tools: list[str]
    is_user_s: bool

    @staticmethod
    def all_of(
        entries: list[Entry], *, raw: bool = False, folds: bool = False
    ) -> Iterator[LogBlock]:
        """Yield the log of a session.

        Each message has a time, a speaker and its full text. Each tool use has a line `[Tool
        argument]`, or with `folds` each run of them. Times are local. Secrets, control and invisible
        characters are removed unless `raw`."""
        speaker = ""
        for entry in _folded(entries) if folds else entries:
            when = "(no time)" if entry.timestamp is None else local_time(entry.timestamp)
            is_user_s = entry.role == "user"
            same_message = entry.message_id and entry.message_id == speaker
            head = "" if same_message else f"{when}  {'User' if is_user_s else 'Assistant'}"
            text = entry.text if raw else for_people(entry.text)
            if folds and len(entry.tools) > 1:
                tools = [shortened(_summary_of_tools(entry.tools), ARGUMENT_CHARACTERS)]
            else:
                named = [
                    f"{tool.name} {relative(tool.argument, entry.cwd)}" for tool in entry.tools
                ]
                tools = [f"[{shortened(tool, ARGUMENT_CHARACTERS)}]" for tool in named]
            yield LogBlock(head, text, tools, is_user_s)
            speaker = entry.message_id


def render(
    entries: list[Entry], unreadable: int = 0, *, raw: bool = False, folds: bool = False
) -> str:
    """Return the log of `LogBlock.all_of` as text, and the number of unreadable records."""
    parts: list[str] = []
    for block in LogBlock.all_of(entries, raw=raw, folds=folds):
        head = [*([""] if parts else []), block.head] if block.head else []
        parts.append("\n".join([*head, *([block.text] if block.text else []), *block.tools]))
    if unreadable:
        parts.append(f"\n({counted(unreadable, 'record')} could not be read)")
    return "\n".join(parts)
