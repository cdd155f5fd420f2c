"""Labels as the page shows them: runtimes, and values with all their texts for people."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from ...common.text.sanitize import for_people
from ...sessions.runtimes.table import all_runtimes

Value = TypeVar("Value")

_OTHER_HUE = 6
_HUES = 8  # in page.css; more families of runtimes share them, the first ones last


class ShownRuntime(NamedTuple):
    """A runtime's display name and colour."""

    title: str
    hue: int


def shown_runtime(name: str) -> ShownRuntime:
    families: dict[str, int] = {}
    for runtime in all_runtimes():
        number = families.setdefault(runtime.family(), len(families)) % (2 * _HUES)
        if runtime.name == name:
            return ShownRuntime(runtime.TITLE, min(number, 2 * _HUES - 1 - number))
    return ShownRuntime(name, _OTHER_HUE)


def shown(value: Value) -> Value:
    """Return a value with all its texts made safe for people, also inside containers.

    Containers are tuples, lists and dictionaries."""
    made: Any = value
    if isinstance(value, str):
        made = for_people(value)
    elif isinstance(value, tuple):
        made = (
            type(value)(*map(shown, value))
            if hasattr(value, "_fields")
            else tuple(map(shown, value))
        )
    elif isinstance(value, list):
        made = [shown(item) for item in value]
    elif isinstance(value, dict):
        made = {key: shown(item) for key, item in value.items()}
    return made  # type: ignore[no-any-return]
