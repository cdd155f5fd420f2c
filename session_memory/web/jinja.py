"""The environment of the templates: all values are escaped, and one that is missing is an error."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..system.terminal import byte_size
from ..text.format import counted
from ..text.timestamps import age, iso_time, local_time
from . import charts, markup

if TYPE_CHECKING:
    from .access import Access

TEMPLATES = Path(__file__).parent / "templates"


def environment(access: Access) -> Environment:
    """The templates, with what all of them may call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters.update(
        ago=_ago, when=_when, clock=_clock, time=local_time, number=_number, bytes=byte_size, markdown=markup.markdown,
        code=markup.code, counted=counted, tail=_tail,
    )  # fmt: skip
    made.globals.update(
        root=access.root, form_token=access.form_token, link=lambda *parts, **query: link(access.root, *parts, **query),
        charts=charts,
    )  # fmt: skip
    return made


def link(root: str, *parts: object, **query: object) -> str:
    """The address of what lies below the root: `link('session', id, q='x')`, without parameters that have no value."""
    path = "/".join([root, *[quote(str(part), safe="") for part in parts]]) if parts else f"{root}/"
    given = [(name, value) for name, value in query.items() if value not in ("", None, [], ())]
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _ago(seconds: float | None) -> Markup:
    """How long ago that was; the script keeps it right."""
    if not seconds:
        return Markup("")
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        iso_time(seconds), local_time(seconds), age(max(0, time.time() - seconds))
    )


def _when(seconds: float | None) -> Markup:
    """The date and the time of day, on this machine."""
    if not seconds:
        return Markup("")
    return Markup('<time datetime="{}">{}</time>').format(iso_time(seconds), local_time(seconds))


def _clock(seconds: float | None) -> Markup:
    """The time of day alone."""
    if not seconds:
        return Markup("")
    text = local_time(seconds)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso_time(seconds), text, text[11:])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _tail(path: str, parts: int = 2) -> str:
    """The last parts of a path, by which people know it."""
    return "/".join(path.rstrip("/").split("/")[-parts:])
