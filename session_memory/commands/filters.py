"""The options by which a listing or a search is limited, and the filter that they make."""

from __future__ import annotations

from ..store.values import Filter
from .options import Option
from .times import since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.place import StorePlace
    from .options import Arguments


def positive(text: str) -> int:
    """A whole number above 0. Raises ValueError."""
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


LIMITS = (
    Option("--project", "only where P is part of the directory", metavar="P", default=""),
    Option("--session", "only this session: its id, or how that begins", metavar="S", default=""),
    Option("--since", "2026-02-01, 3d, 2h, today, yesterday", metavar="WHEN", convert=since),
    Option("--until", "the same, for the other end", metavar="WHEN", convert=since),
)


def limit(most: int) -> Option:
    """The option that says how many are shown."""
    return Option("--limit", f"at most N ({most})", metavar="N", default=most, convert=positive)


def filter_of(arguments: Arguments, place: StorePlace) -> Filter:
    """What was asked for, in the groups that may be seen."""
    return Filter(
        homes=place.homes,
        project=arguments.project,
        session=arguments.session,
        since=arguments.since,
        until=arguments.until,
        limit=arguments.limit,
    )
