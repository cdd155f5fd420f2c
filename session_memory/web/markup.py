"""Markdown and code as HTML. markdown-it-py renders with HTML off, so every tag is text; images become links, since the
page loads nothing external."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

MOST_HIGHLIGHTED = 20_000  # characters of one piece of code: pygments takes about a second for a million
MOST_RENDERED = 200_000  # characters of one text; a longer one is shown unrendered
_FORMATTER = HtmlFormatter(nowrap=True)
_WEB = ("http://", "https://", "mailto:")


@lru_cache(maxsize=500)
def markdown(text: str) -> Markup:
    """Render Markdown as HTML."""
    if len(text) > MOST_RENDERED:
        return Markup('<div class="as-is">{}</div>').format(text)
    return Markup(_renderer().render(text))


def code(text: str, name: str = "", path: str = "") -> Markup:
    """Highlight code of the language `name`, or of the file `path`; unhighlighted if both are unknown."""
    lexer = (_lexer_named(name) if name else _lexer_of(path)) if len(text) <= MOST_HIGHLIGHTED else None
    return escape(text) if lexer is None else Markup(highlight(text, lexer, _FORMATTER))


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "highlight": _highlighted}).enable(
        ["table", "strikethrough"]
    )
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # which are no links says _link_open
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("link_close", _link_close)
    made.add_render_rule("image", _image)
    return made


def _highlighted(text: str, name: str, _: str) -> str:
    return str(code(text, name or "text"))


def _link_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Render a link to another site without referrer and opener. Other targets, such as a file, are not links: the
    title names them."""
    href = str(tokens[index].attrs.get("href", ""))
    if not _is_web(href):
        return str(Markup('<span class="aim" title="{}">').format(unquote(href)))
    tokens[index].attrs.update(rel="noopener noreferrer", target="_blank")
    return self.renderToken(tokens, index, options, env)


def _link_close(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    opened = next(tokens[at] for at in range(index, -1, -1) if tokens[at].type == "link_open")
    return "</a>" if _is_web(str(opened.attrs.get("href", ""))) else "</span>"


def _is_web(address: str) -> bool:
    return address.lower().startswith(_WEB)


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    label = token.content or "image"
    if not _is_web(str(token.attrs.get("src", ""))):
        return str(
            Markup('<span class="aim" title="{}">{}</span>').format(unquote(str(token.attrs["src"])), f"[{label}]")
        )
    return str(Markup('<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>').format(
        str(token.attrs.get("src", "")), f"[{label}]"
    ))  # fmt: skip


@lru_cache(maxsize=64)
def _lexer_named(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _lexer_of(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path.rpartition("/")[2], stripnl=False)
    except ClassNotFound:
        return None
