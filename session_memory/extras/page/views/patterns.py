"""Patterns: commands that fail and their fixes, tools and their order, files edited together."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....history.patterns.habits import find_habits, short_names
from ....history.store.sqlite.tool_uses import conversation_steps
from ....history.store.values import Filter
from .._choices import filters, period, places
from .._labels import shown
from .._page_request import PageRequest
from .._view import View

SHOWN = 10
DEFAULT_PERIOD = "30d"
EVERYTHING = 10**9


values = partial(filters, default=DEFAULT_PERIOD)  # counting is too slow for a page


def _counted(request: PageRequest) -> dict[str, Any]:
    _, since = period(request, DEFAULT_PERIOD)
    wanted = Filter(
        directories=places(request).directories,
        since=since,
        limit=EVERYTHING,
    )
    found = find_habits(request.while_wanted(conversation_steps(request.store, wanted)))
    names = short_names(found)
    return {
        "conversations": found.conversations,
        "tool_uses": found.tool_uses,
        "commands": shown(found.commands[:SHOWN]),
        "together": shown(
            [
                one._replace(first=names[one.first], second=names[one.second])
                for one in found.together[:SHOWN]
            ]
        ),
        "tools": shown(found.tools[:SHOWN]),
        "orders": shown(found.orders[:SHOWN]),
    }


VIEWS = (
    View("patterns", "/patterns", values, "Patterns", "p"),
    View("patterns_counted", "/patterns/counted", _counted),
)
