"""Text as Markdown that shows all of it, has no effects, and can be turned back: `unescape` undoes `escape`. Pure.

Outside code a backslash is put before what CommonMark would interpret: tags and comments, character references, links
to anything but the web, first-level headings and rules, and lines that look like an archive's own. Code stays as it is
where it is certain to be code, whatever surrounds it.

Most of the time that an archive takes is spent here. So patterns work on whole texts; those for lines begin with a line
feed, and one is put before the text, since the regex engine finds a literal at a pattern's start fastest.
"""

from __future__ import annotations

import re

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

_FENCES = ("```", "~~~")
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_TABLE = re.compile(r"^[ \t>]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*(?:(?::-*:?|-+:?)[ \t]*)?)*$", re.MULTILINE)
_BEGINS_A_BLOCK = re.compile(r"[-+*] |\d{1,9}[.)] |>|#|\||`{3}|~{3}|    |\t")

# Backticks, with the code and the closing backticks if there are any. In a table a `|` ends a cell, even within code.
_CODE = r"`(`*)(?!`)([^\n]*?(?<!`)`\1(?!`))?"
_CODE_IN_CELL = r"`(`*)(?!`)([^\n|]*?(?<!`)`\1(?!`))?"
_MARK = rf"\\(?=[{re.escape(PUNCTUATION)}])"
_NO_LINK_TO_THE_WEB = r"\](?=[(:])(?![(][^\S\n]*(?:(?i:https?://|mailto:)|[^\s:&\\<()]*(?:[)/#?]|[^\S\n])))"
_LIVE = rf"<|&(?=[#A-Za-z])|{_MARK}|{_NO_LINK_TO_THE_WEB}"
_SPECIAL = re.compile(f"{_CODE}|{_LIVE}")
_SPECIAL_IN_TABLE = re.compile(f"{_CODE_IN_CELL}|{_LIVE}")
_ESCAPED = re.compile(rf"{_CODE}|{_MARK}.")

_OWN = r"(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__):|\*Compacted "
_OWN_LINE = re.compile(rf" {{0,3}}(?={_OWN})")
# The beginning of a line that may be a heading, a rule, a fence, or one of the archive's: `_meaning_at` decides.
_MAY_MEAN_MORE = re.compile(rf"\n(?=[ \t>#=*_+~\d-])(?:[ \t>+*_\d.)-]*(?=[#=~\n]|\Z)| {{0,3}}(?={_OWN}))")
_CONTAINER = re.compile(r"[ \t>]+|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t])")
_HEADING = re.compile(r"#(?=[ \t]|\Z)|=+[ \t]*\Z|~{3}")
_OWN_IN_CODE = re.compile(rf"(\n {{0,3}})(?=\\*(?:{_OWN}))")
_ESCAPED_OWN_IN_CODE = re.compile(rf"(\n {{0,3}})\\(?=\\*(?:{_OWN}))")


def escape(text: str) -> str:
    """`text` as Markdown in which only emphasis, lists, tables, lower headings, code and web links have an effect."""
    special = _SPECIAL_IN_TABLE if "|" in text and _TABLE.search(text) else _SPECIAL
    parts = [_escape_code(part) if is_code else _escape_prose(part, special) for part, is_code in _parts(text)]
    return "\n".join(parts)


def unescape(text: str) -> str:
    """What `escape` was given."""
    return "\n".join([_unescape_code(part) if is_code else _unescape_prose(part) for part, is_code in _parts(text)])


def begins_a_block(text: str) -> bool:
    """Whether `text` begins with a block, which must begin a line: a list, a fence, a table, a quotation."""
    return _BEGINS_A_BLOCK.match(text) is not None


def _parts(text: str) -> list[tuple[str, bool]]:
    """`text` in parts of whole lines, each with whether it is fenced code."""
    if "```" not in text and "~~~" not in text:
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    lines = text.split("\n")
    unclosed: dict[str, int] = {}
    begin = at = 0
    while at < len(lines):
        may_open = lines[at].lstrip(" ").startswith(_FENCES)
        end = _fenced_end(lines, at, unclosed) if may_open else None
        if end is None:
            at += 1
            continue
        if begin < at:
            parts.append(("\n".join(lines[begin:at]), False))
        parts.append(("\n".join(lines[at:end]), True))
        begin = at = end
    if begin < len(lines):
        parts.append(("\n".join(lines[begin:]), False))
    return parts


def _fenced_end(lines: list[str], at: int, unclosed: dict[str, int]) -> int | None:
    """The index behind the fenced code that begins at line `at`; None where none does, or where it may not be code.

    A fence without an end would hide all that follows. An indented one may be in a list, which ends, with the code, at
    the first line that is indented less. `unclosed` holds, by character, the length of fences that are known to have no
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


def _escape_prose(text: str, special: re.Pattern[str]) -> str:
    """Escapes first what has a meaning within a line, then what makes a line a first-level heading, a rule, a fence, or
    one of the archive's."""
    return _MAY_MEAN_MORE.sub(_escape_line, "\n" + special.sub(_escape_special, text))[1:]


def _escape_line(found: re.Match[str]) -> str:
    begin, end = found.start() + 1, found.string.find("\n", found.end())
    at = 1 + _meaning_at(found.string[begin:] if end < 0 else found.string[begin:end])
    return f"{found[0][:at]}\\{found[0][at:]}" if at else found[0]


def _meaning_at(line: str) -> int:
    """The index in `line`, perhaps within lists and quotations, of what makes it more than text; -1 for nothing.

    Each mark of a list may begin a rule, which depends on the rest of the line; that is examined once.
    """
    shown = line.rstrip(" \t")
    mark = shown[-1:]
    rule_at = len(shown.rstrip(f"{mark} \t")) if mark and mark in "-_*" else len(line)
    at = 0
    while at < len(line):
        if (at >= rule_at and line[at] == mark) or _HEADING.match(line, at):
            return at
        container = _CONTAINER.match(line, at)
        if container is None:
            break
        at = container.end()
    own = _OWN_LINE.match(line)
    return own.end() if own else -1


def _escape_special(found: re.Match[str]) -> str:
    marks, code = found.groups()
    if marks is None:
        return "\\" + found[0]
    return found[0] if code else "\\`" * len(found[0])


def _escape_code(text: str) -> str:
    """Code as it is, but with one more backslash before a line like one of the archive's."""
    return _OWN_IN_CODE.sub(r"\1\\", "\n" + text)[1:]


def _unescape_code(text: str) -> str:
    return _ESCAPED_OWN_IN_CODE.sub(r"\1", "\n" + text)[1:]


def _unescape_prose(text: str) -> str:
    return _ESCAPED.sub(lambda found: found[0] if found[1] is not None else found[0][1], text)
