"""The environment of the templates. It escapes all values, and a missing value is an error.

Its filters render times, numbers, Markdown and code. markdown-it-py renders with HTML off, so every
tag is text. Images become links, because the page loads nothing external.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import lru_cache, partial
from math import floor, log10
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from ... import extension_points
from ...app.labels import project_of
from ...common.system.terminal import byte_size
from ...common.text.format import counted, shortened_id
from ...common.text.timestamps import age, iso_time, local_time
from ._access import Access
from ._diffs import FOLDED_CHARACTERS, Diff, DiffLine
from ._labels import shown_runtime

_PACKAGE = Path(__file__).parents[2]
TEMPLATES = Path(__file__).parent / "templates"
# characters of one piece of code: pygments takes about a second for a million
MOST_HIGHLIGHTED = 20_000
MOST_RENDERED = 200_000  # characters of one text; a longer one is shown unrendered
_FORMATTER = HtmlFormatter(nowrap=True)
_WEB = ("http://", "https://", "mailto:")
WEEKS = 53
_STEP = 14  # from one square to the next
_LEFT, _TOP = 26, 14  # of the first square
_NAME_ROOM = timedelta(weeks=2)  # width of a month's name
_LEVELS = 4
_BUSY = 0.95  # this share of the days with activity is below the strongest colour
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _template_folders() -> list[Path]:
    """Return our folder, and the folders beside the modules of other extras with views."""
    modules = [place.partition(":")[0] for place in extension_points.VIEWS.values()]
    folders = [_PACKAGE.joinpath(*name.split(".")).with_name("templates") for name in modules]
    return list(dict.fromkeys([TEMPLATES, *folders]))


def environment() -> Environment:
    """Return the templates' environment, with the functions that they call."""
    made = Environment(
        loader=FileSystemLoader(_template_folders()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        ago=_ago,
        when=_when,
        clock=_clock,
        time=local_time,
        number=_number,
        short=_short,
        short_id=shortened_id,
        bytes=byte_size,
        markdown=_markdown,
        code=_code,
        counted=counted,
        tail=_tail,
        seconds=_seconds,
        plain=_plain,
        runtime=shown_runtime,
        project=project_of,
        highlighted=_highlighted_diff,
    )
    made.filters.update(axis=_axis, busy=_busy, calendar=_calendar, level=_level)
    made.globals["charts"] = made.get_template("charts.html").module
    return made


def page_environment(access: Access) -> Environment:
    """Return the environment with the page's addresses and forms."""
    made = environment()
    made.globals.update(
        root=access.root, form_token=access.form_token, link=partial(_link, access.root)
    )
    for name in made.list_templates():  # an upgrade may replace the files; all take 0.15 s
        made.get_template(name)
    return made


def _link(root: str, *parts: object, **query: object) -> str:
    """Return an address below the root: `link('session', id, q='x')`.

    Parameters without a value are left out."""
    path = "/".join([root, *[_quoted(str(part)) for part in parts]]) if parts else f"{root}/"
    given = "&".join(
        [
            f"{name}={_quoted(str(value))}"
            for name, value in query.items()
            if value not in ("", None)
        ]
    )
    return f"{path}?{given}" if given else path


def _plain(text: str) -> Markup:
    """Return a message for a terminal, with the commands between backquotes as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd number of backquotes
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


@lru_cache(maxsize=4000)
def _quoted(text: str) -> str:
    """Quote `text` for an address. Cached: a page repeats a session's id a thousand times."""
    return quote(text, safe="")


def _ago(seconds: float | None) -> Markup:
    """Return the age of a time; the script keeps it current."""
    if not seconds:
        return Markup("")
    return _time(
        seconds, age(max(0, time.time() - seconds)), f' title="{local_time(seconds)}" data-ago'
    )


def _when(seconds: float | None) -> Markup:
    return _time(seconds, local_time(seconds)) if seconds else Markup("")


def _clock(seconds: float | None) -> Markup:
    if not seconds:
        return Markup("")
    text = local_time(seconds)
    return _time(seconds, text[11:], f' title="{text}"')


def _time(seconds: float, text: str, attributes: str = "") -> Markup:
    """Return a time as HTML: digits, nothing to escape."""
    return Markup(f'<time datetime="{iso_time(seconds)}"{attributes}>{text}</time>')


def _seconds(milliseconds: int | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _short(value: int) -> str:
    """Abbreviate a number of five digits or more: `46.4K`, `59.1M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        if value >= 10_000 and value >= size - size / 2000:  # 999,950 is not 1,000.0K
            return f"{value / size:,.1f}{unit}"
    return f"{value:,}"


def _tail(path: str, parts: int = 2) -> str:
    """Return the last parts of a path, by which people know it."""
    return "/".join(path.rstrip("/").split("/")[-parts:])


@lru_cache(maxsize=500)
def _markdown(text: str) -> Markup:
    if len(text) > MOST_RENDERED:
        return Markup('<div class="as-is">{}</div>').format(text)
    return Markup(_renderer().render(text))


def _code(text: str, name: str = "", path: str = "") -> Markup:
    """Highlight code of the language `name` or of the file `path`, if either is known."""
    lexer = (
        (_lexer_named(name) if name else _lexer_of(path)) if len(text) <= MOST_HIGHLIGHTED else None
    )
    return escape(text) if lexer is None else Markup(highlight(text, lexer, _FORMATTER))


def _highlighted_diff(diff: Diff, path: str) -> list[tuple[DiffLine, Markup, str]]:
    """Return the lines of a diff, each with its highlighted text and the rest of a long line.

    Each side is highlighted as a whole, so a string or comment of several lines keeps its
    colour."""
    sides: dict[str, list[Markup]] = {}
    for other in ("add", "del"):
        texts = [line.text[:FOLDED_CHARACTERS] for line in diff.lines if line.kind != other]
        lines = str(_code("\n".join(texts), path=path)).split("\n")
        is_whole = len(lines) - len(texts) in (0, 1)  # a lexer ends the last line
        sides[other] = (
            [Markup(line) for line in lines] if is_whole else [escape(text) for text in texts]
        )
    old, new = iter(sides["add"]), iter(sides["del"])
    shown = []
    for line in diff.lines:
        removed = next(old) if line.kind != "add" else Markup("")
        text = next(new) if line.kind != "del" else removed
        shown.append((line, text, line.text[FOLDED_CHARACTERS:]))
    return shown


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "highlight": _highlighted})
    made.enable(["table", "strikethrough"])
    made.validateLink = lambda url: True  # type: ignore[method-assign,unused-ignore]  # which are no links says _link_open
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("link_close", _link_close)
    made.add_render_rule("image", _image)
    return made


def _highlighted(text: str, name: str, _: str) -> str:
    return str(_code(text, name or "text"))


def _link_open(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    """Render a link to another site without referrer and opener.

    Other targets, such as a file, are not links: the title names them."""
    href = str(tokens[index].attrs.get("href", ""))
    if not _is_web(href):
        return str(Markup('<span class="aim" title="{}">').format(unquote(href)))
    tokens[index].attrs.update(rel="noopener noreferrer", target="_blank")
    return self.renderToken(tokens, index, options, env)


def _link_close(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    opened = next(tokens[at] for at in range(index, -1, -1) if tokens[at].type == "link_open")
    return "</a>" if _is_web(str(opened.attrs.get("href", ""))) else "</span>"


def _is_web(address: str) -> bool:
    return address.lower().startswith(_WEB)


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    source, label = str(tokens[index].attrs.get("src", "")), f"[{tokens[index].content or 'image'}]"
    if not _is_web(source):
        return str(Markup('<span class="aim" title="{}">{}</span>').format(unquote(source), label))
    return str(
        Markup('<a href="{}" rel="noopener noreferrer" target="_blank">{}</a>').format(
            source, label
        )
    )


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


class Calendar(NamedTuple):
    """The squares of a year: the days (`2026-02-21`) and the months' names, with their places."""

    days: list[tuple[str, int, int]]
    months: list[tuple[str, int]]
    width: int = _LEFT + WEEKS * _STEP


def _calendar(until: float) -> Calendar:
    """Return the squares up to the day of `until`, a column per week from Monday.

    `until` is in seconds since 1970."""
    last = date.fromtimestamp(until)
    first = last.toordinal() - last.weekday() - 7 * (WEEKS - 1)
    calendar_days = Calendar([], [])
    month = 0
    for index in range(last.toordinal() - first + 1):
        day = date.fromordinal(first + index)
        column, row = divmod(index, 7)
        x = _LEFT + column * _STEP
        if row == 0 and day.month != month and (day + _NAME_ROOM).month == day.month:
            month = day.month
            calendar_days.months.append((_MONTHS[month - 1], x))
        calendar_days.days.append((day.isoformat(), x, _TOP + row * _STEP))
    return calendar_days


def _level(value: float, top: float) -> int:
    """Return the strength of a colour from 0 for nothing to 4, by the square root.

    With the root, a few differ visibly from none."""
    return 0 if value <= 0 else min(_LEVELS, 1 + int((value / top) ** 0.5 * _LEVELS * 0.999))


def _busy(values: Iterable[float]) -> float:
    """Return the value of the strongest colour; a single outlier does not pale the rest."""
    positive = sorted(value for value in values if value > 0)
    return positive[int(len(positive) * _BUSY)] if positive else 1


def _axis(top: float) -> float:
    """Return the end of an axis for values up to `top`: 1, 2, 4 or 5 times a power of ten."""
    unit = 10.0 ** floor(log10(top)) if top > 0 else 1.0
    return next(unit * times for times in (1, 2, 4, 5, 10) if top <= unit * times * (1 + 1e-9))
