"""Patterns: commands that fail and their fixes, tools and their order, working hours, files edited together."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...patterns.habits import Habits, find_habits, short_names
from ...store.sqlite.tool_uses import conversation_steps
from ...store.values import Filter
from ...text.sanitize import for_people
from ..choices import filters, period, places
from ..labels import project_of, shown
from ..page_request import PageRequest

SHOWN = 10
DEFAULT_PERIOD = "30d"
EVERYTHING = 10**9
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


values = partial(filters, default=DEFAULT_PERIOD)  # counting is too slow for a page


def counted(request: PageRequest) -> dict[str, Any]:
    _, since = period(request, DEFAULT_PERIOD)
    wanted = Filter(request.location.homes, directories=places(request).directories, since=since, limit=EVERYTHING)
    found = find_habits(request.while_wanted(conversation_steps(request.store, wanted)))
    names = short_names(found)
    return {
        "conversations": found.conversations,
        "tool_uses": found.tool_uses,
        "commands": shown(found.commands[:SHOWN]),
        "together": shown(
            [one._replace(first=names[one.first], second=names[one.second]) for one in found.together[:SHOWN]]
        ),
        "tools": shown(found.tools[:SHOWN]),
        "orders": shown(found.orders[:SHOWN]),
        "hours": [(f"{hour}:00", number) for hour, number in enumerate(found.hours)],
        "weekdays": list(zip(_DAYS, found.weekdays)),
        "places": _places(found)[:SHOWN],
    }


def _places(found: Habits) -> list[tuple[str, int]]:
    """Return the projects with their number of messages, the most first."""
    messages: dict[str, int] = {}
    for place in found.places:
        project = project_of(for_people(place.directory)) or "(unknown)"
        messages[project] = messages.get(project, 0) + place.messages
    return sorted(messages.items(), key=lambda pair: -pair[1])
