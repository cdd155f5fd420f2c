"""What of a conversation a model gets to read: messages in full, tool uses as a line each. Pure.

The lines, one or more for each entry:

    User: Why does the build fail?
    Assistant: A dependency is missing.
    Action: Bash(npm install) -> ok, 12 lines, 480 B
    Action: Read(src/app.ts) -> file read, 2,134 lines, 48 KB
    Action: Edit(src/app.ts) -> error: String to replace not found in file
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.format import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..settings.sections import Filtering
    from ..store.values import StoredEntry

_OK_WORDS = {"read": "file read", "edit": "file changed"}
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def filtered(entries: Iterable[StoredEntry], filtering: Filtering) -> str:
    """The lines of `entries`; '' if nothing is left of them."""
    return "\n".join([line for entry in entries if (line := filtered_entry(entry, filtering))])


def filtered_entry(entry: StoredEntry, filtering: Filtering) -> str:
    """The lines of one entry or tool use; '' for nothing."""
    if entry.role == "tool":
        return _action(entry, filtering) if filtering.keep_tool_structure else ""
    is_kept = filtering.keep_user_messages if entry.role == "user" else filtering.keep_agent_responses
    return f"{_SPEAKERS[entry.role]}: {entry.text}" if is_kept and entry.text else ""


def relative_path(path: str, cwd: str) -> str:
    """`path` relative to `cwd` where it lies below it."""
    base = cwd.rstrip("/") + "/"
    return path[len(base) :] if cwd and path.startswith(base) and len(path) > len(base) else path


def size_text(characters: int) -> str:
    """`480 B`, `48 KB`, `1.2 MB`."""
    if characters < 1000:
        return f"{characters} B"
    return f"{characters / 1e3:.0f} KB" if characters < 999_500 else f"{characters / 1e6:.1f} MB"


def _action(entry: StoredEntry, filtering: Filtering) -> str:
    argument = one_line(relative_path(entry.text, entry.cwd))
    argument = shorten(argument, filtering.max_parameter_chars)
    ended = shorten(_outcome(entry), filtering.max_output_summary_chars)
    return f"Action: {one_line(entry.tool)}({argument})" + (f" -> {ended}" if ended else "")


def _outcome(entry: StoredEntry) -> str:
    """How a tool use ended, in a few words; '' if that is not known."""
    if entry.outcome == "error":
        return f"error: {one_line(entry.error)}" if entry.error else "error"
    if not entry.outcome:
        return ""
    word = _OK_WORDS.get(entry.kind, "ok")
    if entry.kind == "edit" or not entry.result_size:
        return word
    lines = entry.result_lines or 1
    return f"{word}, {lines:,} {'line' if lines == 1 else 'lines'}, {size_text(entry.result_size)}"
