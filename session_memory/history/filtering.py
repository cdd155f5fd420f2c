"""Filters a conversation for a model, and splits it into chunks. Pure.

Messages stay whole and tool calls become one line each. An entry has one or more lines, after the
reasoning that led to it if the settings keep reasoning:

    User: Why does the build fail?
    Assistant: A dependency is missing.
    Action: Bash(npm install) -> ok, 12 lines, 480 B
    Action: Read(src/app.ts) -> file read, 2,134 lines, 48 KB
    Action: Edit(src/app.ts) -> error: String to replace not found in file
    Reasoning: The old text has tabs.
    Action: Grep(pattern="\\t", path="src") -> ok, 3 lines, 90 B
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..common.text.format import ELLIPSIS, one_line, shorten
from ..common.text.sanitize import for_people
from ..common.text.tokens import estimated_tokens, longest_within
from ..sessions.settings.sections import Filtering
from .store.values import StoredEntry

if TYPE_CHECKING:
    from .recorded import RecordedDetails

GOES_ON = "[goes on]"
WENT_ON = "[went on]"
_OK_WORDS = {"read": "file read", "edit": "file changed"}
_SPEAKERS = {"user": "User", "assistant": "Assistant"}
MOST_PARAMETERS = 20  # of one tool use
_NAME_CHARACTERS = 60  # of a parameter


class Chunk(NamedTuple):
    """The filtered text of an exchange, or of a part of it.

    `exchange` and `part` count from 0, `first_item` and `last_item` are ids of entries. `timestamp`
    is the first known time in it, or None."""

    text: str
    tokens: int
    exchange: int
    part: int
    first_item: int
    last_item: int
    timestamp: int | None


def filtered(entries: Iterable[StoredEntry], filtering: Filtering) -> str:
    """Return the lines of `entries`; '' if filtering leaves nothing."""
    return "\n".join([line for entry in entries if (line := filtered_entry(entry, filtering))])


def filtered_entry(
    entry: StoredEntry, filtering: Filtering, details: RecordedDetails | None = None
) -> str:
    """Return the lines of one entry or tool call; '' if it is filtered out."""
    thought = details.reasoning.get(entry.id, "") if details else ""
    lines = [f"Reasoning: {thought}" if thought else "", _line(entry, filtering, details)]
    return "\n".join([line for line in lines if line])


def _line(entry: StoredEntry, filtering: Filtering, details: RecordedDetails | None) -> str:
    if entry.role == "tool":
        given = details.arguments.get(entry.id, {}) if details else {}
        return _action(entry, filtering, given) if filtering.keep_tool_structure else ""
    is_kept = (
        filtering.keep_user_messages if entry.role == "user" else filtering.keep_agent_responses
    )
    return f"{_SPEAKERS[entry.role]}: {entry.text}" if is_kept and entry.text else ""


def is_command(text: str) -> bool:
    """Return whether a text is a runtime's own command, such as `/clear` or `/model opus`.

    A text such as `/etc/hosts is empty` is not a command."""
    word, _, remainder = text.strip().partition(" ")
    return (
        word.startswith("/")
        and "/" not in word[1:]
        and "\n" not in remainder
        and len(remainder.split()) < 2
    )


def relative_path(path: str, cwd: str) -> str:
    """Return `path` relative to `cwd` if it is below that, else unchanged."""
    base = cwd.rstrip("/") + "/"
    return path[len(base) :] if cwd and path.startswith(base) and len(path) > len(base) else path


def _size_text(characters: int) -> str:
    """Format a size: `480 B`, `48 KB`, `1.2 MB`."""
    if characters < 1000:
        return f"{characters} B"
    return f"{characters / 1e3:.0f} KB" if characters < 999_500 else f"{characters / 1e6:.1f} MB"


def exchanges(entries: Iterable[StoredEntry]) -> list[list[StoredEntry]]:
    """Split entries into exchanges: consecutive user entries with all following replies.

    Entries before the first user entry form an exchange too."""
    split: list[list[StoredEntry]] = []
    was_user = False
    for entry in entries:
        is_user = entry.role == "user"
        if not split or (is_user and not was_user):
            split.append([])
        split[-1].append(entry)
        was_user = is_user
    return split


def chunks(
    entries: Sequence[StoredEntry],
    filtering: Filtering,
    max_tokens: int,
    details: RecordedDetails | None = None,
) -> list[Chunk]:
    """Return a conversation's exchanges as chunks of at most `max_tokens` (see `estimated_tokens`).

    A larger exchange is split between entries, and a larger entry between lines. GOES_ON and
    WENT_ON mark the cuts. An exchange that filtering empties yields no chunk."""
    parts = []
    for number, exchange in enumerate(exchanges(entries)):
        texts = ((entry, filtered_entry(entry, filtering, details)) for entry in exchange)
        for part, lines in enumerate(_packed(_cut_texts(texts, max_tokens), max_tokens)):
            text = "\n".join([line for _, line in lines])
            times = [entry.timestamp for entry, _ in lines if entry.timestamp is not None]
            first, last = lines[0][0].id, lines[-1][0].id
            parts.append(
                Chunk(
                    text,
                    estimated_tokens(text),
                    number,
                    part,
                    first,
                    last,
                    times[0] if times else None,
                )
            )
    return parts


def _action(entry: StoredEntry, filtering: Filtering, given: Mapping[str, object]) -> str:
    most = filtering.max_parameter_chars
    argument = (
        _parameters(given, entry.cwd, most)
        if given
        else shorten(one_line(relative_path(entry.text, entry.cwd)), most)
    )
    ended = shorten(_outcome(entry), filtering.max_output_summary_chars)
    return f"Action: {one_line(entry.tool)}({argument})" + (f" -> {ended}" if ended else "")


def _parameters(given: Mapping[str, object], cwd: str, most: int) -> str:
    """Return `pattern="login", limit=5`, with at most `most` characters of each value."""
    shown = [_parameter(name, value, cwd, most) for name, value in given.items()]
    left = len(shown) - MOST_PARAMETERS
    return ", ".join([*shown[:MOST_PARAMETERS], *([f"{left:,} more"] if left > 0 else [])])


def _parameter(name: str, value: object, cwd: str, most: int) -> str:
    if isinstance(value, str):
        value = one_line(relative_path(value, cwd))
    name = shorten(one_line(name), _NAME_CHARACTERS)
    try:
        written = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        written = ELLIPSIS
    text = for_people(f"{name}={written}")  # the name may show that the value is a secret
    return shorten(text, len(name) + 1 + most)


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
    return f"{word}, {lines:,} {'line' if lines == 1 else 'lines'}, {_size_text(entry.result_size)}"


def _cut_texts(
    texts: Iterable[tuple[StoredEntry, str]], max_tokens: int
) -> Iterator[tuple[StoredEntry, str]]:
    for entry, text in texts:
        if text:
            for piece in _pieces(text, max_tokens):
                yield entry, piece


def _packed(
    lines: Iterable[tuple[StoredEntry, str]], max_tokens: int
) -> Iterator[list[tuple[StoredEntry, str]]]:
    """Group lines: as many as fit `max_tokens`, at least one."""
    packed: list[tuple[StoredEntry, str]] = []
    text = ""
    for entry, line in lines:
        longer = f"{text}\n{line}" if packed else line
        if packed and estimated_tokens(longer) > max_tokens:
            yield packed
            packed, longer = [], line
        packed.append((entry, line))
        text = longer
    if packed:
        yield packed


def _pieces(text: str, max_tokens: int) -> Iterator[str]:
    """Yield `text` in pieces of at most `max_tokens`, cut after a paragraph, line or word."""
    seam = 2 * estimated_tokens(f"\n{GOES_ON}{WENT_ON}\n")
    room = max(1, max_tokens - seam)
    before = ""
    while estimated_tokens(before + text) > max_tokens:
        at = _cut(text, longest_within(text, room))
        yield f"{before}{text[:at].rstrip()}\n{GOES_ON}"
        text = text[at:].lstrip("\n")
        before = f"{WENT_ON}\n"
    if text:
        yield before + text


def _cut(text: str, limit: int) -> int:
    """Return the index, at most `limit`, at which to cut `text`.

    It is the last end of a paragraph, else of a line, else of a word, in the second half."""
    for border in ("\n\n", "\n", " "):
        at = text.rfind(border, limit // 2, limit)
        if at > 0:
            return at + len(border)
    return limit
