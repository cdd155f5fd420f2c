"""Groups equal errors of failed tool calls, and finds the steps until success. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ...common.text.format import one_line, shorten
from ...common.text.shell_commands import family, is_looking, may_find_nothing

if TYPE_CHECKING:
    from ..store.values import StoredEntry

MOST_TOOL_USES = 80  # a success after more calls is hardly related to the failure
MOST_STEPS = 12
LEAST_WORDS = 3  # distinctive words, for one line of several to count
COMMAND_CHARACTERS = 100

# A tool call that a person refused or stopped is reported as an error in these words.
_STOPPED = re.compile(
    r"The user doesn't want to|\[Request interrupted|Command (?:was )?aborted|Permission prompt "
    r"was aborted|"
    r"Permission to use \S+ has been denied|Operation aborted|The tool use was "
    r"rejected|.*requested permissions? to",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"(?:\(no output\)|(?:command (?:exited with|failed with exit) code|exit code) -?\d+)?\.?$",
    re.I,
)

_EXIT_CODE = re.compile(r"exit code -?\d+: ")
_PART = r"[\w.@+~\[\]-]"
_ENDING = r"(?:[cm]?[jt]sx?|py|rs|go|rb|java|kt|cc?|cpp|hp?p?|cs|php|swift|sh|md|json|ya?ml|toml|html|css|sql|txt|lock)"
_SHAPES = tuple(
    (re.compile(shape), name)
    for shape, name in (
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
        (r"\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:z|[+-]\d\d:?\d\d)?\b", "<time>"),
        (r"\b[a-z][a-z0-9+.-]*://[^\s'\"`)\]>]+", "<url>"),
        (
            rf"(?:\b[a-z]:)?(?:[\\/~]{_PART}+|\b[\w.@+-]+(?=[\\/][\w.@+-]))(?:[\\/]{_PART}*)+",
            "<path>",
        ),
        (r"(?<!\w)/[\w.@+-]{2,}", "<path>"),
        (rf"\b[\w-]+\.{_ENDING}\b", "<path>"),
        (r"\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{7,}\b", "<hex>"),
        (r"(?<![a-z_\d])\d+(?:[.,:]\d+)*", "<n>"),  # not digits after a letter: `TS2339` is a name
    )
)
_WORD = re.compile(r"<\w+>|\w+")
_IN_ANY_ERROR = frozenset(
    (
        "a",
        "an",
        "and",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "with",
        "error",
        "errors",
        "exception",
        "failed",
        "failure",
        "fatal",
        "warning",
        "line",
        "column",
        "file",
    )
)


class Failure(NamedTuple):
    """A failed tool call.

    `times` counts repetitions with the same error. `fixed` is the repetition that succeeded, or
    None. `steps` are the successful calls in between: edits, commands, and re-reading a file after
    a failed edit."""

    tool: StoredEntry
    times: int
    fixed: StoredEntry | None
    steps: tuple[StoredEntry, ...]


def is_failure(tool: StoredEntry) -> bool:
    """Return whether a tool call failed.

    A call that a person stopped, and a search without matches, did not fail."""
    if tool.outcome != "error" or _STOPPED.match(tool.error):
        return False
    says_nothing = _SAYS_NOTHING.match(tool.error) is not None
    return not (says_nothing and tool.kind == "command" and may_find_nothing(tool.text))


def normalised(error: str) -> str:
    """Return an error in lower case without its variable parts.

    Variable parts are exit codes, times, addresses, paths, ids and numbers."""
    text = _EXIT_CODE.sub("", one_line(error).lower())
    for shape, name in _SHAPES:
        text = shape.sub(name, text)
    return text


def _similarity(wanted: str, error: str) -> float:
    """Return the share of a queried error that another error matches, both normalised.

    It is above 0.0 only if one error has all distinctive words of the other, and 1.0 if both have
    the same ones. The query may be a part of the error, or contain it."""
    if wanted == error:
        return 1.0
    words, others = _telling(wanted), _telling(error)
    if words and (words <= others or (others <= words and len(others) >= LEAST_WORDS)):
        return min(len(words), len(others)) / max(len(words), len(others))
    return 0.0


class ErrorQuery:
    """An error to look for, of one or more lines.

    Of several lines, only those as distinctive as an error count."""

    def __init__(self, text: str) -> None:
        lines = [normalised(line) for line in text.splitlines() if line.strip()]
        telling = (
            [line for line in lines if len(_telling(line)) >= LEAST_WORDS]
            if len(lines) > 1
            else lines
        )
        self._lines = telling or lines
        self._words = [_telling(line) for line in self._lines]
        self.similarity = cache(self._similarity)  # a store repeats the same errors

    def _similarity(self, error: str) -> float:
        """Return the highest similarity between a line and an error."""
        raw, best = error.lower(), 0.0
        for line, words in zip(self._lines, self._words):
            shared = sum([word in raw for word in words])
            # a quick check that rules out any similarity
            if shared == len(words) or shared >= LEAST_WORDS:
                best = max(best, _similarity(line, normalised(error)))
        return best


def _telling(error: str) -> set[str]:
    return {
        word
        for word in _WORD.findall(error)
        if not word.startswith("<") and word not in _IN_ANY_ERROR
    }


def failures(items: Iterable[StoredEntry]) -> list[Failure]:
    """Return the failures among a conversation's tool calls, in order of first occurrence."""
    open_failures: list[_OpenFailure] = []
    waiting: dict[tuple[str, str], list[_OpenFailure]] = {}
    for tool in items:
        if tool.role != "tool":
            continue
        key = _key(tool)
        same = waiting.get(key, [])
        if is_failure(tool):
            known = next(
                (
                    failure
                    for failure in same
                    if normalised(failure.tool.error) == normalised(tool.error)
                ),
                None,
            )
            if known is None:
                known = _OpenFailure(tool)
                open_failures.append(known)
                waiting.setdefault(key, []).append(known)
            else:
                known.times += 1
        elif tool.outcome == "ok":
            for failure in waiting.pop(key, []):
                failure.fixed = tool
        waiting = _still_waiting(waiting, tool)
    return [
        Failure(failure.tool, failure.times, failure.fixed, tuple(failure.steps[-MOST_STEPS:]))
        for failure in open_failures
    ]


def what_followed(failure: Failure, names: Mapping[str, str] | None = None) -> str:
    """Return what fixed a failure, such as `after editing a.ts`, or ''.

    `names` maps paths to shown names."""
    if failure.fixed is None:
        return ""
    names = names or {}
    if failure.tool.kind == "edit":
        return (
            "after reading it again"
            if any(step.kind == "read" for step in failure.steps)
            else "at another try"
        )
    edits = list(dict.fromkeys(step.text for step in failure.steps if step.kind == "edit"))
    runs = list(
        dict.fromkeys(
            name for step in failure.steps if step.kind == "command" and (name := family(step.text))
        )
    )
    parts = []
    if edits:
        names_of_files = [f"`{names.get(path) or path.rpartition('/')[2]}`" for path in edits]
        more = f" and {len(names_of_files) - 3} more" if len(names_of_files) > 3 else ""
        parts.append(f"editing {', '.join(names_of_files[:3])}{more}")
    if runs:
        parts.append(f"running {', '.join(f'`{name}`' for name in runs[-2:])}")
    if parts:
        return f"after {' and '.join(parts)}"
    if one_line(failure.fixed.text) != one_line(failure.tool.text):
        if failure.fixed.kind == "command":
            return f"with `{shorten(one_line(failure.fixed.text), COMMAND_CHARACTERS)}`"
        return "when asked differently"
    return "at another try"


class _OpenFailure:
    """A failure that has not been repeated successfully yet; `age` counts the tool calls since."""

    def __init__(self, tool: StoredEntry) -> None:
        self.tool = tool
        self.times = 1
        self.fixed: StoredEntry | None = None
        self.steps: list[StoredEntry] = []
        self.age = 0


def _key(tool: StoredEntry) -> tuple[str, str]:
    if tool.kind == "command":
        return "command", family(tool.text)
    return (tool.kind, tool.text) if tool.kind in ("edit", "read") else (tool.kind, tool.tool)


def _still_waiting(
    waiting: dict[tuple[str, str], list[_OpenFailure]], tool: StoredEntry
) -> dict[tuple[str, str], list[_OpenFailure]]:
    """Add a successful tool call to the steps of each open failure, and drop old failures."""
    is_step = tool.outcome == "ok" and (
        tool.kind == "edit" or (tool.kind == "command" and not is_looking(tool.text))
    )
    for same in waiting.values():
        for failure in same:
            failure.age += 1
            if is_step or (tool.kind == "read" and tool.text == failure.tool.text):
                failure.steps.append(tool)
    return {
        key: kept
        for key, same in waiting.items()
        if (kept := [failure for failure in same if failure.age <= MOST_TOOL_USES])
    }
