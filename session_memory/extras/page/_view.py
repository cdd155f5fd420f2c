"""A view of the page, and the action of a form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ._page_request import PageRequest


class View(NamedTuple):
    """A view: `values` makes the values for the template `<name>.html`.

    `path` is below the root; `{name}` in it matches anything. A view with a `label` is in the
    navigation, below its `heading`; `g` and its `key` open it."""

    name: str
    path: str
    values: Callable[[PageRequest], dict[str, Any]]
    label: str = ""
    key: str = ""
    heading: str = ""


class FormFields(NamedTuple):
    """The fields of a form that was sent, by their names; a name may have several values."""

    values: Mapping[str, list[str]]

    def one(self, name: str) -> str:
        """Return the first value, or '' if there is none."""
        return next(iter(self.all(name)), "")

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])


class Action(NamedTuple):
    """A form's action: `work` gets its fields and returns the path to show next.

    The path is below the root."""

    path: str
    work: Callable[[PageRequest, FormFields], str]


class Download(NamedTuple):
    """A file to download: `work` returns its name, its media type and its text in pieces."""

    path: str
    work: Callable[[PageRequest], tuple[str, str, Iterator[str]]]


def frame(request: PageRequest) -> dict[str, Any]:
    """Return no values, because the view is too slow for a page and is loaded into it later."""
    return {}
