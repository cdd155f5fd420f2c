"""The last entries of a transcript, and how they read as a log."""

from __future__ import annotations

from ..system.files import open_regular, os
from ..text.format import counted
from ..text.paths import relative
from ..text.sanitize import for_people, shortened
from ..text.timestamps import local_time
from .lines import first_line
from .reader import TranscriptReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes import Runtime
    from .entries import Entry, ToolUse
    from .gate import Gate

ARGUMENT_CHARACTERS = 200


def last_entries(runtime: Runtime, path: str, count: int, gate: Gate | None) -> tuple[list[Entry], int]:
    """Return the last `count` entries of the file of which its `gate` lets something be told, each id once, in file
    order, and how many records were unreadable. Without a gate, for whoever is in the session, all may be told.

    Reads from the end, so that the size of the file does not matter. Raises OSError.
    """
    if gate is not None and gate.rule.ignore:
        return [], 0
    latest: list[Entry] = []
    ids: set[str] = set()
    descriptor = open_regular(path)
    try:
        reader = TranscriptReader(runtime, first_line(descriptor))
        for entry in reader.from_end(descriptor):
            if entry.id and entry.id in ids:
                continue
            ids.add(entry.id)
            if gate is not None and gate.is_forgotten(entry):  # and so is what stands before it
                break
            latest += [entry] if gate is None else gate.told([entry])
            if len(latest) >= count:
                break
        return latest[::-1], reader.unreadable
    finally:
        os.close(descriptor)


def has_entries(runtime: Runtime, path: str, gate: Gate) -> bool:
    """Return whether a transcript has any entry of which something may be told."""
    try:
        return bool(last_entries(runtime, path, 1, gate)[0])
    except OSError:
        return False


def render(entries: list[Entry], unreadable: int = 0, *, raw: bool = False) -> str:
    """The log: a time and a speaker for each message, its text in full, a `[Tool argument]` line for each tool use.

    Times are local. Secrets, control and invisible characters are left out unless `raw`.
    """
    blocks: list[str] = []
    speaker = ""
    for entry in entries:
        when = "(no time)" if entry.timestamp is None else local_time(entry.timestamp)
        head = f"{when}  {'User' if entry.role == 'user' else 'Assistant'}"
        lines = [entry.text if raw else for_people(entry.text)] if entry.text else []
        lines += [_tool_line(tool, entry.cwd) for tool in entry.tools]
        same_message = entry.message_id and entry.message_id == speaker
        blocks.append("\n".join(lines if same_message else [*([""] if blocks else []), head, *lines]))
        speaker = entry.message_id
    if unreadable:
        blocks.append(f"\n({counted(unreadable, 'record')} could not be read)")
    return "\n".join(blocks)


def _tool_line(tool: ToolUse, cwd: str) -> str:
    return f"[{shortened(f'{tool.name} {relative(tool.argument, cwd)}', ARGUMENT_CHARACTERS)}]"
