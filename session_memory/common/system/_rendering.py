"""Markdown, code and diffs as painted lines, with rich.

The lines have only the styles of `plain_output`, so escapes from elsewhere stay harmless: rich
chooses the styles, and `PlainOutput` prints them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pygments.token import Comment, Generic, Keyword, Name, Number, String
from rich.console import Console
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from ._wrapping import words_wrapped
from .plain_output import STYLES, painted

_MOST_IN_A_LINE = 2000  # of code: a lexer's patterns may take quadratic time for a line
_MOST_NESTED = 19  # levels of blocks: the parser drops the text in deeper ones
_THEME = ANSISyntaxTheme(
    {
        Comment: Style(dim=True),
        Keyword: Style(color="blue"),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Number: Style(color="cyan"),
        String: Style(color="green"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Generic.Subheading: Style(color="cyan"),
    }
)
_STYLES = {"code_inline": "cyan", "em": "italic", "strong": "bold", "s": "dim"}
_HEADINGS = {"h1": "bold underline", "h2": "bold underline"}
_RULE = "-" * 40
_MARKUP = frozenset("|-:\\*_~`[]()<>\"'")  # of tables and of the text in their cells
_LANGUAGE = re.compile(r"[\w+#-]*")


def markdown_lines(text: str, width: int) -> list[str]:
    """Return Markdown as painted lines; prose has at most `width` columns, code stays as it is.

    Nothing is left out: tags, images and references are shown as they are, and each line of a
    paragraph stays a line."""
    parser = _Parser("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.disable(["entity", "html_block", "html_inline", "image", "reference"])
    tokens, source = parser.parse(text), text.split("\n")
    if max((token.level for token in tokens), default=0) >= _MOST_NESTED:
        return source
    return list(_Blocks(width, source).lines(SyntaxTreeNode(tokens)))


def code_lines(code: str, language: str) -> list[str]:
    """Return code, or a diff (`diff`), as painted lines."""
    lines = code.split("\n")
    if max(map(len, lines)) > _MOST_IN_A_LINE:
        return lines
    highlighted = Syntax("", language, theme=_THEME).highlight(code)
    return [_painted(line) for line in highlighted.split("\n", allow_blank=True)][: len(lines)]


class _Parser(MarkdownIt):
    """A parser that leaves the addresses of links as they were typed."""

    def normalizeLink(self, url: str) -> str:
        return url

    def normalizeLinkText(self, link: str) -> str:
        return link


class _Blocks:
    """Makes lines of `width` columns from the blocks of Markdown, whose lines are `source`."""

    def __init__(self, width: int, source: list[str]) -> None:
        self._width = max(width, 20)
        self._source = source

    def _narrower(self, columns: int) -> _Blocks:
        return _Blocks(self._width - columns, self._source)

    def lines(self, parent: SyntaxTreeNode) -> Iterator[str]:
        """Yield the lines of all blocks in a node, with an empty line between two blocks."""
        is_loose = not any(child.type == "paragraph" and child.hidden for child in parent.children)
        for number, node in enumerate(parent.children):
            if number and is_loose:
                yield ""
            yield from self._block(node)

    def _block(self, node: SyntaxTreeNode) -> Iterator[str]:
        if node.type in ("bullet_list", "ordered_list"):
            yield from self._list(node)
        elif node.type == "blockquote":
            bar = painted("green", "|")
            for line in self._narrower(2).lines(node):
                yield f"{bar} {line}".rstrip()
        elif node.type in ("fence", "code_block"):
            if not _LANGUAGE.fullmatch(node.info):  # a file and its lines, for example
                yield f"    {painted('dim', node.info)}"
            language = node.info.partition(" ")[0] or "text"
            for line in code_lines(node.content.rstrip("\n"), language):
                yield f"    {line}".rstrip()
        elif node.type == "hr":
            yield painted("dim", _RULE[: self._width])
        elif node.type == "table":
            yield from self._table(node)
        else:  # a paragraph or a heading
            text = _inline(node)
            if node.type == "heading":
                text.stylize(_HEADINGS.get(node.tag, "bold"))
            for part in text.split("\n", allow_blank=True):
                yield from words_wrapped(_painted(part), self._width)

    def _list(self, node: SyntaxTreeNode) -> Iterator[str]:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else 0
        paragraphs = [
            child for item in node.children for child in item.children if child.type == "paragraph"
        ]
        is_tight = all(child.hidden for child in paragraphs)
        for number, item in enumerate(node.children):
            mark = f"{first + number}." if node.type == "ordered_list" else "-"
            indent = " " * (len(mark) + 1)
            if number and not is_tight:
                yield ""
            lines = list(self._narrower(len(indent)).lines(item)) or [""]
            yield f"{painted('dim', mark)} {lines[0]}".rstrip()
            for line in lines[1:]:
                yield f"{indent}{line}".rstrip()

    def _table(self, node: SyntaxTreeNode) -> Iterator[str]:
        rows = [row for part in node.children for row in part.children]
        cells = "".join([_inline(cell).plain for row in rows for cell in row.children])
        source = self._source[slice(*node.map or ())]
        # differs if a row has more cells than the head
        if _without_markup(cells) != _without_markup("".join(source)):
            yield from source
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for cell in rows[0].children:
            is_right = "right" in str(cell.attrs.get("style", ""))
            table.add_column(
                _inline(cell), justify="right" if is_right else "left", overflow="fold"
            )
        for row in rows[1:]:
            table.add_row(*map(_inline, row.children))
        for parts in _console(self._width).render_lines(table, pad=False):
            yield "".join([_with_marks(part.text, part.style) for part in parts]).rstrip()


def _inline(block: SyntaxTreeNode) -> Text:
    """Return the text in a block with the styles of its parts."""
    text = Text()
    for inline in block.children:
        for node in inline.children:
            _append(text, node, "")
    return text


def _append(text: Text, node: SyntaxTreeNode, style: str) -> None:
    if node.type in ("softbreak", "hardbreak"):
        text.append("\n")
    elif node.type in ("text", "code_inline"):
        text.append(node.content, f"{style} {_STYLES.get(node.type, '')}".strip())
    else:
        style = f"{style} {_STYLES.get(node.type, '')}".strip()
        marks = node.markup if node.markup == "__" else ""  # __init__ is rather a name
        text.append(marks, style)
        begin = len(text)
        for child in node.children:
            _append(text, child, style)
        text.append(marks, style)
        address = str(node.attrs.get("href", ""))
        if node.type == "link" and text.plain[begin:] != address:
            title = f" {node.attrs['title']}" if node.attrs.get("title") else ""
            text.append(f" ({address}{title})", "dim")


def _without_markup(text: str) -> list[str]:
    return sorted([each for each in "".join(text.split()) if each not in _MARKUP])


@lru_cache(maxsize=8)
def _console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)


def _painted(text: Text) -> str:
    text = text.copy()
    text.rstrip()
    text.end = ""
    return "".join([_with_marks(part.text, part.style) for part in text.render(_console(80))])


def _with_marks(text: str, style: Style | None) -> str:
    """Return text painted with those parts of a style that a `PlainOutput` prints."""
    if style is None:
        return text
    color = style.color.name.removeprefix("bright_") if style.color else ""
    names = [name for name in STYLES if getattr(style, name, None) is True or name == color]
    for name in names:
        text = painted(name, text)
    return text
