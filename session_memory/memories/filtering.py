"""Filter a conversation for a model: messages in full, tool calls as one line each. Pure.

One or more lines per entry:

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
    """Return the lines of `entries`; '' if filtering leaves nothing."""
    return "\n".join([line for entry in entries if (line := filtered_entry(entry, filtering))])


def filtered_entry(entry: StoredEntry, filtering: Filtering) -> str:
    """Return the lines of one entry or tool call; '' for nothing."""
    if entry.role == "tool":
        return _action(entry, filtering) if filtering.keep_tool_structure else ""
    is_kept = filtering.keep_user_messages if entry.role == "user" else filtering.keep_agent_responses
    return f"{_SPEAKERS[entry.role]}: {entry.text}" if is_kept and entry.text else ""


def relative_path(path: str, cwd: str) -> str:
    """Return `path` relative to `cwd` if it is below it, else unchanged."""
    base = cwd.rstrip("/") + "/"
    return path[len(base) :] if cwd and path.startswith(base) and len(path) > len(base) else path


def size_text(characters: int) -> str:
    """Format a size: `480 B`, `48 KB`, `1.2 MB`."""
    if characters < 1000:
        return f"{characters} B"
    return f"{characters / 1e3:.0f} KB" if characters < 999_500 else f"{characters / 1e6:.1f} MB"


def _action(entry: StoredEntry, filtering: Filtering) -> str:
    argument = one_line(relative_path(entry.text, entry.cwd))
    argument = shorten(argument, filtering.max_parameter_chars)
    ended = shorten(_outcome(entry), filtering.max_output_summary_chars)
    return f"Action: {one_line(entry.tool)}({argument})" + (f" -> {ended}" if ended else "")


def _outcome(entry: StoredEntry) -> str:
    """Return the outcome of a tool call in a few words; '' if unknown."""
    if entry.outcome == "error":
        return f"error: {one_line(entry.error)}" if entry.error else "error"
    if not entry.outcome:
        return ""
    word = _OK_WORDS.get(entry.kind, "ok")
    if entry.kind == "edit" or not entry.result_size:
        return word
    lines = entry.result_lines or 1
    return f"{word}, {lines:,} {'line' if lines == 1 else 'lines'}, {size_text(entry.result_size)}"
