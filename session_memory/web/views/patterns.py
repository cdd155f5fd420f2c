"""Patterns: commands that fail and their fixes, tools and their order, working hours, files edited together."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...patterns.habits import FailingCommand, Habits, ToolHabit, find_habits, short_names
from ...store.sqlite.tool_uses import conversation_steps
from ...store.values import Filter
from ...text.sanitize import all_for_people, for_people
from ..choices import filters, period, places
from ..labels import project_of
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
        "commands": [_shown(one) for one in found.commands[:SHOWN]],
        "together": [
            one._replace(first=for_people(names[one.first]), second=for_people(names[one.second]))
            for one in found.together[:SHOWN]
        ],
        "tools": _tools(found.tools),
        "orders": _tools(found.orders),
        "hours": [(f"{hour}:00", number) for hour, number in enumerate(found.hours)],
        "weekdays": list(zip(_DAYS, found.weekdays)),
        "places": _places(found)[:SHOWN],
    }


def _shown(one: FailingCommand) -> FailingCommand:
    texts = iter(
        all_for_people([one.command, *(error for error, _ in one.errors), *(what for what, _ in one.then_worked)])
    )
    return one._replace(
        command=next(texts),
        errors=[(next(texts) or "no output", times) for _, times in one.errors],
        then_worked=[(next(texts), times) for _, times in one.then_worked],
    )


def _tools(found: list[ToolHabit]) -> list[ToolHabit]:
    return [one._replace(tools=tuple(all_for_people(list(one.tools)))) for one in found[:SHOWN]]


def _places(found: Habits) -> list[tuple[str, int]]:
    """Return the projects with their number of messages, the most first."""
    messages: dict[str, int] = {}
    for place in found.places:
        project = project_of(for_people(place.directory)) or "(unknown)"
        messages[project] = messages.get(project, 0) + place.messages
    return sorted(messages.items(), key=lambda pair: -pair[1])
