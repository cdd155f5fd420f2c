"""Which strategies there are: ours, and those that other packages bring by the entry point group."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..text.names import is_name
from .strategy import StrategyError

if TYPE_CHECKING:
    from ..settings.memories_values import MemorySettings
    from .strategy import Budget, Strategy

ENTRY_POINTS = "session_memory.strategies"
_BUILT_IN = {
    "extractive": ("strategies.extractive.strategy", "ExtractiveStrategy"),
    "summary": ("strategies.summary.strategy", "SummaryStrategy"),
    "graphiti": ("strategies.graphiti.strategy", "GraphStrategy"),
}


class UnknownStrategyError(StrategyError):
    """No strategy has this id, or the one that has cannot be made."""


def load(ids: Iterable[str], settings: MemorySettings, budget: Budget) -> list[Strategy]:
    """The strategies of these ids. Raises UnknownStrategyError, and what a strategy's own check raises."""
    return [_load(id, settings, budget) for id in ids]


def known_ids() -> list[str]:
    """The ids of all strategies that there are here."""
    from importlib.metadata import entry_points

    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def _load(id: str, settings: MemorySettings, budget: Budget) -> Strategy:
    if id in _BUILT_IN:
        module, name = _BUILT_IN[id]
        make = getattr(import_module(f"{__package__}.{module}"), name)
    else:
        from importlib.metadata import entry_points

        points = entry_points(group=ENTRY_POINTS, name=id) if is_name(id) else ()
        point = next(iter(points), None)
        if point is None:
            raise UnknownStrategyError(f"no strategy is called {id!r}", f"there are {', '.join(known_ids())}")
        try:
            make = point.load()
        except Exception as error:
            raise UnknownStrategyError(f"strategy {id}: {point.value} cannot be loaded: {error}") from error
    strategy = cast("Strategy", make(settings.values, budget))
    if strategy.id != id:
        raise UnknownStrategyError(f"strategy {id}: it calls itself {strategy.id!r}", "its package has to be mended")
    return strategy
