"""Converts text to Markdown that shows all of it and has no effects, and back. Pure.

`unescape` undoes `escape`. Outside code, a backslash precedes everything that CommonMark would
interpret: tags and comments, character references, images, links to anything but the web,
first-level headings and rules, and lines that a reader could mistake for an archive's own. Code
stays as it is if it is certain to be code, whatever surrounds it.

Most of the time for an archive is spent here. So patterns work on many texts at once. Patterns for
lines begin with a line feed, and one is put before the texts, because the regex engine finds a
literal at a pattern's start fastest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

_FENCE = re.compile(r"\n( {0,3})(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})")
_TABLE = re.compile(
    r"^([ \t>]*)(?=(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*(?:(?::-*:?|-+:?)[ \t]*)?)*$)", re.MULTILINE
)
_BEGINS_A_BLOCK = re.compile(r"[-+*] |\d{1,9}[.)] |>|#|\||`{3}|~{3}|    |\t")

# joins texts: no pattern extends beyond a line, and no plain text contains it
_SEPARATOR = "\n\0\n"

# Backticks, with the code and the closing backticks if there are any. In a table, a `|` ends a cell
# even within code.
_CODE = r"`(?:[^`\n]+`(?!`)|(`*)(?!`)([^\n]*?(?<!`)`\1(?!`))?)"
_CODE_IN_CELL = r"`(`*)(?!`)([^\n|]*?(?<!`)`\1(?!`))?"
_MARK = rf"\\(?=[{re.escape(PUNCTUATION)}])"
_NO_LINK_TO_THE_WEB = r"\](?=[(:])(?!\([^\S\n]*(?i:https?://|mailto:))"
_LIVE = rf"<|&(?=[#A-Za-z])|!(?=\[)|{_MARK}|{_NO_LINK_TO_THE_WEB}"
_SPECIAL = re.compile(f"{_CODE}|{_LIVE}")
_SPECIAL_IN_TABLE = re.compile(f"{_CODE_IN_CELL}|{_LIVE}")
_ESCAPED = re.compile(rf"{_CODE}|{_MARK}.")

# A line like the first line of a message in an archive, `**User** (2026-02-21 03:39:07+01:00):
# ...`, or a compaction.
_OWN = r"\*\*[^*\n]{1,80}\*\*(?: \(\d{4}-[^)\n]{1,40}\))?:|__[^*_\n]{1,80}__:|\*Compacted "
_OWN_LINE = re.compile(rf" {{0,3}}(?={_OWN})")
_CONTAINER = re.compile(r"[ \t>]+|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t])")
_HEADING = re.compile(r"#(?=[ \t]|\Z)|[=-]+[ \t]*\Z|~{3}")
_OWN_IN_CODE = re.compile(rf"(\n {{0,3}})(?=\\*(?:{_OWN}))")
_ESCAPED_OWN_IN_CODE = re.compile(rf"(\n {{0,3}})\\(?=\\*(?:{_OWN}))")

# Three patterns: bold type that may continue over the end of a line, text that certainly ends
# before bold type, and the marks of bold type outside code.
_BOLD = re.compile(r"[*_]{2}")
_CLOSED_BOLD = re.compile(
    r"(?<!\S)(\*\*|__)(?=\S)[^*_`\[\\\n]*(?:(?<=\S)\1(?!\S)|(?<=\w)\1(?=[.,:;)!?]))"
)
_BOLD_MARKS = re.compile(rf"{_CODE}|\\.|[*_]{{2,}}")

_LABEL_CHARACTERS = 120
_UNLIKE = r"\u2010-\u2027\u2190-\u23ff\u2500-\u27bf\u3040-\u32ff\u3400-\ud7ff\U0001f300-\U0001faff"
_LABEL_MARKS = re.compile(r"#{2,6}[ \t]+[*_\[]*|[*_\[]*(?:\*\*|__)[*_\[]*")
_DATED = re.compile(r"[^\n]{1,80}?\(\d{4}-\d\d-\d\d")
# Letters that look like those of ASCII: Cyrillic, Greek, Armenian, small capitals.
_ALIKE = str.maketrans(
    "АВЕКМНОРСТХУІЅЈасеорхуіѕјԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικρτυχսօհᴜꜱᴇʀᴛᴏʟᴀɪɴʜᴍᴄᴅ",
    "ABEKMHOPCTXYISJaceopxyisjdhqwABEZHIKMNOPTYXavoikptuxuohusertolainhmcd",
)
_HAS_ALIKE = re.compile(f"[{''.join(map(chr, _ALIKE))}]")


def escape(text: str, speakers: Sequence[str] = ()) -> str:
    """Return `text` as Markdown with only emphasis, lists, tables, lower headings, code and web
    links."""
    return escape_all([text], speakers)[0]


def escape_all(texts: list[str], speakers: Sequence[str] = ()) -> list[str]:
    """Escape each of `texts`.

    No line of the results looks like the start of a message by one of `speakers` (names in bold).
    """
    labels = _labels(tuple(speakers))
    parts = [_parts(text) for text in texts]
    is_table = ["|" in text and _TABLE.search(text) is not None for text in texts]
    prose: dict[bool, list[str]] = {False: [], True: []}  # by whether it is of a text with a table
    for parts_of_text, in_table in zip(parts, is_table):
        prose[in_table] += [part for part, is_code in parts_of_text if not is_code]
    escaped = {
        in_table: iter(_escape_prose(texts_there, labels, in_table))
        for in_table, texts_there in prose.items()
    }
    return [
        "\n".join(
            [
                _escape_code(part) if is_code else next(escaped[in_table])
                for part, is_code in parts_of_text
            ]
        )
        for parts_of_text, in_table in zip(parts, is_table)
    ]


def unescape(text: str) -> str:
    """Undo `escape`."""
    parts = []
    for part, is_code in _parts(text):
        if is_code:
            parts.append(_ESCAPED_OWN_IN_CODE.sub(r"\1", "\n" + part)[1:])
        else:
            parts.append(
                _ESCAPED.sub(lambda match: match[0] if match[0][0] == "`" else match[0][1], part)
            )
    return "\n".join(parts)


def begins_a_block(text: str) -> bool:
    """Check if `text` begins with a Markdown block that must begin a line.

    These are lists, fences, tables and quotations."""
    return _BEGINS_A_BLOCK.match(text) is not None


def fence_around(text: str, at: int) -> str:
    """Return the line that would end the fenced code around index `at` of `text`, or ''."""
    begin = 0
    for part, is_code in _parts(text):
        end = begin + len(part) + 1
        opened = _FENCE.match("\n" + part) if is_code and begin < at < end else None
        if opened is not None:
            return opened[0][1:] if begin + opened.end() <= at + 1 else ""
        begin = end
    return ""


def _parts(text: str) -> list[tuple[str, bool]]:
    """Return `text` in parts of whole lines, each with whether it is fenced code."""
    if "```" not in text and "~~~" not in text:
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    lines = "\n" + text
    unclosed: dict[str, int] = {}
    begin = at = 0  # each at the line feed before a line
    while opened := _FENCE.search(lines, at):
        end = _fenced_end(lines, opened, unclosed)
        if end is None:
            at = opened.end()
            continue
        if begin < opened.start():
            parts.append((lines[begin + 1 : opened.start()], False))
        parts.append((lines[opened.start() + 1 : end], True))
        begin = at = end
    if begin < len(lines):
        parts.append((lines[begin + 1 :], False))
    return parts


def _fenced_end(lines: str, opened: re.Match[str], unclosed: dict[str, int]) -> int | None:
    """Return the index after the last line of the fenced code that `opened` begins, or None.

    None means that it may not be code. A fence without an end would hide the rest of the text. An
    indented fence may be in a list; the list, and the code, end at the first line with less
    indentation. `unclosed` has the lengths of fences, by character, that are known to have no end,
    so each is searched only once."""
    indent, marks = opened[1], opened[2]
    if len(marks) >= unclosed.get(marks[0], len(marks) + 1):
        return None
    closed = _fence_end(len(indent), marks).search(lines, opened.end())
    if closed is None:
        unclosed[marks[0]] = len(marks)
        return None
    return closed.end() if closed[1] is None else None


@lru_cache(maxsize=64)
def _fence_end(indent: int, marks: str) -> re.Pattern[str]:
    """Return the pattern for the end of code fenced with `marks`.

    Its group matches a line with less indentation."""
    less = rf"(?! {{{indent}}})(?=[^\S\n]*\S)()|" if indent else "(?!)()|"
    return re.compile(rf"\n(?:{less} {{0,3}}{marks}{marks[0]}*[ \t]*(?=\n|\Z))")


class _Labels(NamedTuple):
    """Patterns that find the names of speakers.

    `lines` matches beginnings of lines that may be a heading, a rule, a fence or a speaker's label
    (`_escape_line` decides). `names` matches a label that begins with a whole name; `cells` finds
    one in a table cell."""

    lines: re.Pattern[str]
    names: re.Pattern[str]
    cells: re.Pattern[str]


@lru_cache(maxsize=16)
def _labels(speakers: tuple[str, ...]) -> _Labels:
    folded = sorted({_folded(name) for name in speakers if name}, key=len, reverse=True)
    names = "|".join(map(re.escape, folded)) or "(?!)"
    initials = "".join(
        {initial for name in folded for initial in (name[0].lower(), name[0].upper())}
    )
    initial = f"[{re.escape(initials)}]" if folded else "(?!)"
    longest = max(map(len, folded), default=0)
    opening, closing = r"[\s`\\~]*", r"[\s`\\\]~]*"
    marks = r"[*_:(|#=\u2013\u2014\u2192.>\u2236\ua789]|-\s|\Z"
    whole = rf"(?i:{names}){closing}(?:{marks}|[\n\x80-\U0010ffff])"
    # Letters beyond ASCII may look like a name's, but Chinese, Japanese and Korean letters, arrows
    # and emoji do not.
    label = rf"{opening}(?:{whole}|(?:{initial}[^\n]{{0,{longest}}}?)?[^\x00-\x7f])|[^\n]{{1,80}}?\(\d{{4}}-"
    plain_label = rf"{whole}|(?:{initial}[^\n]{{0,{longest}}}?)?[^\x00-\x7f{_UNLIKE}]"
    lines = (
        r"\n(?:(?=[ \t>]*[#=*_+~\d\[-])"
        r"(?: {0,3}(?:\*\*(?=[^*\n]{1,80}\*\*(?: "
        r"\(\d{4}-|:))|__(?=[^*_\n]{1,80}__:)|\*(?=Compacted ))"
        rf"|[ \t>+*_\d.)#\[-]*(?:(?<=\*\*)|(?<=__)|(?<=#[ \t]))(?={label if folded else '(?!)'})"
        r"|[ \t>+*_\d.)-]*(?=#(?:[ \t\n]|\Z)|=+[ \t]*(?:\n|\Z)|~~~)"
        r"|[ \t>+\d.)]*[-*_][ \t>+*_\d.)-]*(?=\n|\Z))"
        rf"|[ \t>]*(?={initial}|[^\x00-\x7f{_UNLIKE}])(?={plain_label if folded else '(?!)'}))"
    )
    cells = (
        rf"[\n|][ \t>+*\d.)_`\\\[~-]*(?i:{names})[ "
        rf"\t`\\\]~*_]*(?:[:=\u2013\u2014\u2192>\u2236\ua789]|\(\d)"
    )
    return _Labels(
        re.compile(lines),
        re.compile(rf"[\s*_`\\\[~]*(?:{names}){closing}(?:{marks})", re.IGNORECASE),
        re.compile(cells),
    )


def _folded(text: str) -> str:
    """Return `text` with ASCII letters instead of similar-looking ones."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    # translating takes ten times as long
    return text.translate(_ALIKE) if _HAS_ALIKE.search(text) else text


def _escape_prose(texts: list[str], labels: _Labels, in_table: bool) -> list[str]:
    """Escape inline markup, then headings, rules, fences and lines like an archive's."""
    joined = _SEPARATOR.join(texts)
    if joined.count("\0") != len(texts) - 1 and len(texts) > 1:
        return [_escape_prose([text], labels, in_table)[0] for text in texts]
    joined = (_SPECIAL_IN_TABLE if in_table else _SPECIAL).sub(_escape_special, joined)
    named: list[int] = []
    lines = "\n" + joined
    joined = labels.lines.sub(lambda match: _escape_line(match, labels.names, named), lines)[1:]
    if _follows_bold(lines, named):
        joined = _escape_bold_before_names(joined, labels.names)
    escaped = joined.split(_SEPARATOR) if len(texts) > 1 else [joined]
    if in_table:
        escaped = [
            _TABLE.sub(r"\1\\", text) if labels.cells.search("\n" + _folded(before)) else text
            for before, text in zip(texts, escaped)
        ]
    return escaped


def _follows_bold(text: str, places: list[int]) -> bool:
    """Check if bold type may begin before one of `places` (in order) in its paragraph.

    Each part is searched once."""
    return any(
        _BOLD.search(text[before:place].rpartition("\n\n")[2]) is not None
        for before, place in zip([0, *places], places)
    )


def _escape_bold_before_names(text: str, names: re.Pattern[str]) -> str:
    """Escape bold type that continues over a line's end and would make the next line a label.

    The next line begins with a speaker's name."""
    lines = text.split("\n")
    may_be_open = goes_on = False
    for number, line in enumerate(lines):
        shown = line.strip(" \t>")
        if shown in ("", "\0"):  # which ends a paragraph, or a text
            may_be_open = goes_on = False
            continue
        goes_on = goes_on or (
            may_be_open and names.match(_folded(shown[:_LABEL_CHARACTERS])) is not None
        )
        if goes_on:
            lines[number] = _BOLD_MARKS.sub(_escape_bold, line)
        may_be_open = may_be_open or _BOLD.search(_CLOSED_BOLD.sub("", line)) is not None
    return "\n".join(lines)


def _escape_bold(match: re.Match[str]) -> str:
    return match[0] if match[0][0] in "`\\" else "".join(["\\" + mark for mark in match[0]])


def _escape_line(match: re.Match[str], names: re.Pattern[str], named: list[int]) -> str:
    """Return the beginning of a line, escaped if needed.

    If it may be a name without marks, add its index to `named`: it is a label only if bold type
    began before it."""
    begin, end = match.start() + 1, match.string.find("\n", match.end())
    line = match.string[begin:] if end < 0 else match.string[begin:end]
    at = _meaning_at(line)
    if at >= 0:
        return f"{match[0][: at + 1]}\\{match[0][at + 1 :]}"
    label = _label_at(line, names)
    if label is None:
        if names.match(_folded(line.lstrip(" \t>")[:_LABEL_CHARACTERS])):
            named.append(begin)
        return match[0]
    before, marks = match[0][: label + 1], match[0][label + 1 :]
    if marks.startswith("#"):
        before += "\\"
    return before + "".join(["\\" + mark if mark in "*_[" else mark for mark in marks])


def _meaning_at(line: str) -> int:
    """Return the index in `line` of the first markup, perhaps within lists and quotations; else -1.

    Each list mark may begin a rule, which depends on the rest of the line; the rest is examined
    once."""
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
    return -1


def _label_at(line: str, names: re.Pattern[str]) -> int | None:
    """Return the index in `line` of marks that could begin a speaker's label, or None.

    They are before bold words or a heading, perhaps within lists and quotations."""
    if archive_line := _OWN_LINE.match(line):
        return archive_line.end()
    at = 0
    while container := _CONTAINER.match(line, at):
        at = container.end()
    marks = _LABEL_MARKS.match(line, at)
    if marks is None:
        return None
    label = _folded(line[marks.end() : marks.end() + _LABEL_CHARACTERS])
    return at if names.match(label) or _DATED.match(label) else None


def _escape_special(match: re.Match[str]) -> str:
    marks, code = match[1], match[2]
    if match[0][0] != "`":
        return "\\" + match[0]
    return match[0] if marks is None or code else "\\`" * len(match[0])


def _escape_code(text: str) -> str:
    """Return code unchanged, except for a backslash before a line like one of the archive's."""
    return _OWN_IN_CODE.sub(r"\1\\", "\n" + text)[1:]
