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

ARGUMENT_CHARACTERS = 200


def last_entries(runtime: Runtime, path: str, count: int) -> tuple[list[Entry], int]:
    """The last `count` entries of the file, each id once, in file order, and how many records were unreadable.

    Reads from the end, so that the size of the file does not matter. Raises OSError.
    """
    latest: list[Entry] = []
    ids: set[str] = set()
    descriptor = open_regular(path)
    try:
        reader = TranscriptReader(runtime, first_line(descriptor))
        for entry in reader.from_end(descriptor):
            if entry.id and entry.id in ids:
                continue
            ids.add(entry.id)
            latest.append(entry)
            if len(latest) >= count:
                break
        return latest[::-1], reader.unreadable
    finally:
        os.close(descriptor)


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
