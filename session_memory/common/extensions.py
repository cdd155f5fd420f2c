"""Loads what a row of `extension_points` names."""

from __future__ import annotations

import sys

from .errors import SessionMemoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_PACKAGE = __name__.partition(".")[0]
_ABSENT = "this copy of session-memory lacks that feature"
_HINT = "install it again to get this feature back"


class AbsentFeatureError(SessionMemoryError):
    """The module of a row was deleted, so this copy of session-memory lacks that feature."""


def load(place: str) -> Any:
    """Return the object that a row names as "module:attribute", or the module without an attribute.

    Raises AbsentFeatureError, also for '', and ImportError if the module needs a package that is
    not installed."""
    if not place:
        raise AbsentFeatureError(_ABSENT, _HINT)
    module, _, attribute = place.partition(":")
    name = f"{_PACKAGE}.{module}"
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        raise AbsentFeatureError(
            f"{_ABSENT}: it has no {module.replace('.', '/')}", _HINT
        ) from None
    return getattr(sys.modules[name], attribute) if attribute else sys.modules[name]


def load_present(places: Iterable[str]) -> list[Any]:
    """Return the objects that these rows name, except for rows whose module was deleted."""
    loaded = []
    for place in places:
        try:
            loaded.append(load(place))
        except AbsentFeatureError:
            pass
    return loaded
