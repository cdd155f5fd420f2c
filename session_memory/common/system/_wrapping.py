"""The width of text on a terminal, and lines broken between words."""

from __future__ import annotations

from .plain_output import END_MARK, SEQUENCES

_WITHOUT_SPACES = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60"  # Chinese and Japanese
_CLOSING = "、。，．）」』】〉》！？：；ー々\uff61-\uff64"  # begins no line
_WITHOUT_MARKS = dict.fromkeys(map(ord, SEQUENCES))


def width_of(text: str) -> int:
    """Return how many columns of a terminal a line takes: wide characters take two, styles none."""
    if text.isascii():
        return len(text)
    text = without_styles(text)
    try:
        from rich.cells import cell_len
    except ImportError:  # an incomplete install
        return len(text)
    return cell_len(text)


def without_styles(text: str) -> str:
    """Return a line without the marks of its styles."""
    return text.translate(_WITHOUT_MARKS)


def words_wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return a line as lines of at most `width` columns, broken between words.

    All lines but the first begin with `indent`. A longer word, such as a path, stays whole. A style
    that a break interrupts goes on behind it. Chinese and Japanese is broken between characters."""
    import re

    character = f"[{_WITHOUT_SPACES}][{_CLOSING}]*"
    lines, line, used, styles = [], "", 0, ""
    for part in re.findall(rf"\s*(?:{character}|[^\s{_WITHOUT_SPACES}]+)|\s+\Z", text):
        word = part.lstrip()
        columns = width_of(part)
        if line and used + width_of(part.rstrip()) > width:
            lines.append(f"{line}{END_MARK if styles else ''}".rstrip())
            line, used, part = f"{indent}{styles}", width_of(indent), word
            columns = width_of(word)
        line, used = line + part, used + columns
        for mark in part:
            styles = "" if mark == END_MARK else styles + mark * (mark in SEQUENCES)
    return [*lines, line]
