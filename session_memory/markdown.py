"""Text as Markdown that shows all of it, does nothing, and can be turned back. Pure.

Outside code a backslash takes its meaning from whatever CommonMark would make more of than text: tags and comments,
character references, links to anything but the web, first-level headings and rules, and lines that look like an
archive's own. Code keeps its looks where it is certain to be code, whatever surrounds it. `unescape` undoes `escape`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_MAY_BE_MORE = re.compile(r"[\\<&`#~*_=\]-]")  # a text without any of these is its own Markdown

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_CONTAINERS = r"(?:[ \t]|>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))*?"
_BLOCK = re.compile(rf"({_CONTAINERS})(#(?=[ \t]|$)|=+[ \t]*$|([-_*])(?:[ \t]*\3)*[ \t]*$|~{{3}})")
_OWN_LINE = re.compile(r"( {0,3})(\\*)(?=(?:\*\*|__)[^*_]{1,80}(?:\*\*|__):|\*Compacted )")
_TABLE = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$", re.MULTILINE)
_SPECIAL = re.compile(r"`+|[\\<]|&(?=[#A-Za-z])|\](?=[(:])")
_WEB_TARGET = re.compile(r"\][(]\s*(?:https?://|mailto:|[^\s:&\\<()]*[)\s/#?])", re.IGNORECASE)


def escape(text: str) -> str:
    """`text` as Markdown in which nothing is live but emphasis, lists, tables, lower headings, code and web links."""
    if not _MAY_BE_MORE.search(text):
        return text
    has_table = "|" in text and _TABLE.search(text) is not None
    return _changed(text, _with_own_escape, lambda line: _escape_block(_escape_inline(line, has_table)))


def unescape(text: str) -> str:
    """What `escape` was given."""
    return _changed(text, _without_own_escape, _unescape_inline)


def _changed(text: str, in_code: Callable[[str], str], elsewhere: Callable[[str], str]) -> str:
    """`text` with every line changed by `in_code` if it belongs to fenced code, else by `elsewhere`."""
    lines = text.split("\n")
    unclosed: dict[str, int] = {}
    at = 0
    while at < len(lines):
        end = _fenced_end(lines, at, unclosed)
        change = elsewhere if end is None else in_code
        end = end or at + 1
        lines[at:end] = [change(line) for line in lines[at:end]]
        at = end
    return "\n".join(lines)


def begins_a_block(text: str) -> bool:
    """Whether the first line of `text` has to begin a line to be what it is: a list, a fence, a table, a quotation."""
    return re.match(r"[-+*] |\d{1,9}[.)] |>|#|\||`{3}|~{3}|    |\t", text) is not None


def _fenced_end(lines: list[str], at: int, unclosed: dict[str, int]) -> int | None:
    """The index behind the fenced code that begins at line `at`; None if none does, or if it might not be code.

    A fence that nothing closes would swallow what follows. An indented one may lie in a list, which any line that is
    indented less would end, and the code with it. `unclosed` notes by character how long a fence is known to have no
    end, so that a text full of them is not searched for each.
    """
    opened = _FENCE.match(lines[at])
    if opened is None or len(opened.group(2)) >= unclosed.get(opened.group(2)[0], len(lines[at]) + 1):
        return None
    indent, marks = opened.groups()
    for index in range(at + 1, len(lines)):
        line = lines[index]
        if line.strip() and not line.startswith(indent):
            return None
        stripped = line.strip(" \t")
        if (
            stripped.startswith(marks)
            and not stripped.strip(marks[0])
            and len(line) - len(line.lstrip(" ")) <= 3
            and not line.lstrip(" ").startswith("\t")
        ):
            return index + 1
    unclosed[marks[0]] = len(marks)
    return None


def _escape_inline(line: str, has_table: bool) -> str:
    if not _SPECIAL.search(line):
        return line
    parts: list[str] = []
    at = 0
    while True:
        found = _SPECIAL.search(line, at)
        if found is None:
            parts.append(line[at:])
            return "".join(parts)
        start, end = found.span()
        parts.append(line[at:start])
        mark = found.group()
        if mark[0] == "`":
            code_end = _code_end(line, end, mark, has_table)
            parts.append(line[start:code_end] if code_end else "\\`" * len(mark))
            at = code_end or end
            continue
        is_harmless = (mark == "\\" and line[end : end + 1] not in _PUNCTUATION) or (
            mark == "]" and _WEB_TARGET.match(line, start) is not None
        )
        parts.append(mark if is_harmless else "\\" + mark)
        at = end


def _code_end(line: str, at: int, marks: str, has_table: bool) -> int:
    """The index behind the code span opened by `marks` just before `at`; 0 if the line does not close it.

    In a table a `|` ends a cell, even in the middle of code.
    """
    for run in re.finditer("`+", line[at:]):
        if run.group() == marks:
            is_split = has_table and "|" in line[at : at + run.start()]
            return 0 if is_split else at + run.end()
    return 0


def _escape_block(line: str) -> str:
    """Takes the meaning from what makes a line a first-level heading, a rule, a fence, or one of the archive's own."""
    found = _BLOCK.match(line)
    if found is None:
        found = _OWN_LINE.match(line)
        if found is None or found.group(2):
            return line
        return f"{found.group(1)}\\{line[found.end() :]}"
    return f"{found.group(1)}\\{line[found.end(1) :]}"


def _unescape_inline(line: str) -> str:
    if "\\" not in line:
        return line
    parts: list[str] = []
    at = 0
    while at < len(line):
        character = line[at]
        if character == "\\" and line[at + 1 : at + 2] in _PUNCTUATION:
            parts.append(line[at + 1])
            at += 2
        elif character == "`":
            marks = line[at : len(line) - len(line[at:].lstrip("`"))]
            end = _code_end(line, at + len(marks), marks, has_table=False) or at + len(marks)
            parts.append(line[at:end])
            at = end
        else:
            parts.append(character)
            at += 1
    return "".join(parts)


def _with_own_escape(line: str) -> str:
    """A line of code that looks like one of the archive's own gets a backslash, or one more."""
    found = _OWN_LINE.match(line)
    return f"{found.group(1)}\\{line[found.end(1) :]}" if found else line


def _without_own_escape(line: str) -> str:
    found = _OWN_LINE.match(line)
    return f"{found.group(1)}{line[found.end(1) + 1 :]}" if found and found.group(2) else line
