"""Patterns: advice for agents, commands that fail and their fixes, files edited together."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....history.patterns.habits import find_habits
from ....history.store.sqlite.tool_uses import conversation_steps
from ....history.store.values import Filter
from .._choices import filters, period, places
from .._flow_chart import flow_chart
from .._labels import shown
from .._page_request import PageRequest
from .._view import View

SHOWN = 10
SHOWN_FLOWS = 14
DEFAULT_PERIOD = "30d"
EVERYTHING = 10**9


values = partial(filters, default=DEFAULT_PERIOD)  # counting is too slow for a page


def _counted(request: PageRequest) -> dict[str, Any]:
    _, since = period(request, DEFAULT_PERIOD)
    wanted = Filter(
        directories=places(request).directories,
        runtime=request.one("runtime"),
        since=since,
        limit=EVERYTHING,
    )
    habits = find_habits(request.while_wanted(conversation_steps(request.store, wanted)))
    names = habits.short_names()
    failing = habits.steps.failing()
    commands = {command.command for command in habits.commands}
    tools = [step for step in failing if step.step not in commands]
    return {
        "conversations": habits.conversations,
        "tool_uses": habits.tool_uses,
        "advice": shown(habits.advice()[:SHOWN]),
        "commands": shown(habits.commands[:SHOWN]),
        "failing_tools": shown(tools[:SHOWN]),
        "recoveries": shown({step.step: step.recoveries for step in failing}),
        "flow": shown(flow_chart(habits.steps.flows(SHOWN_FLOWS))),
        "together": shown(
            [
                pair._replace(first=names[pair.first], second=names[pair.second])
                for pair in habits.together[:SHOWN]
            ]
        ),
        "tools": shown(habits.tools[:SHOWN]),
        "orders": shown(habits.orders[:SHOWN]),
    }


VIEWS = (
    View("patterns", "/patterns", values, "Patterns", "p", "Look back"),
    View("patterns_counted", "/patterns/counted", _counted),
)
