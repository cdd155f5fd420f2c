"""The environment of the templates: escapes all values; a missing one is an error."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..system.terminal import byte_size
from ..text.format import counted
from ..text.timestamps import age, iso_time, local_time
from . import charts, markup
from .access import Access

TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Return the templates' environment, with the functions that they call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters.update(
        ago=_ago, when=_when, clock=_clock, time=local_time, number=_number, short=_short, bytes=byte_size,
        markdown=markup.markdown, code=markup.code, counted=counted, tail=_tail,
    )  # fmt: skip
    made.globals["charts"] = charts
    return made


def page_environment(access: Access) -> Environment:
    """Return the environment with the page's addresses and forms."""
    made = environment()
    made.globals.update(
        root=access.root, form_token=access.form_token, link=lambda *parts, **query: link(access.root, *parts, **query)
    )
    for name in made.list_templates():  # an upgrade may replace the files; all take 0.15 s
        made.get_template(name)
    return made


def link(root: str, *parts: object, **query: object) -> str:
    """Return an address below the root: `link('session', id, q='x')`, without parameters that have no value."""
    path = "/".join([root, *[_quoted(str(part)) for part in parts]]) if parts else f"{root}/"
    given = "&".join([f"{name}={_quoted(str(value))}" for name, value in query.items() if value not in ("", None)])
    return f"{path}?{given}" if given else path


@lru_cache(maxsize=4000)
def _quoted(text: str) -> str:
    """Quote `text` for an address. Cached: a page repeats a session's id a thousand times."""
    return quote(text, safe="")


def _ago(seconds: float | None) -> Markup:
    """Return the age of a time; the script keeps it current."""
    if not seconds:
        return Markup("")
    return _time(seconds, age(max(0, time.time() - seconds)), f' title="{local_time(seconds)}" data-ago')


def _when(seconds: float | None) -> Markup:
    """Return local date and time of day."""
    return _time(seconds, local_time(seconds)) if seconds else Markup("")


def _clock(seconds: float | None) -> Markup:
    """Return the local time of day."""
    if not seconds:
        return Markup("")
    text = local_time(seconds)
    return _time(seconds, text[11:], f' title="{text}"')


def _time(seconds: float, text: str, attributes: str = "") -> Markup:
    """Return a time as HTML: digits, nothing to escape."""
    return Markup(f'<time datetime="{iso_time(seconds)}"{attributes}>{text}</time>')


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
