"""A run over the queue with built-in and third-party strategies. For `process` and upkeep."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple, cast

from ..common.extensions import load
from ..common.text.timestamps import now_milliseconds
from ..extension_points import STRATEGIES
from ..history.prices import Prices, all_prices, cost
from ..history.store.location import StoreLocation
from ..history.store.sqlite.queue import ConversationPart, Retry, StoredQueue
from ..history.store.values import StoredEntry
from ..sessions.settings.homes import ENV_GUARD
from ..sessions.settings.sections import MemorySettings
from .entry_points import KIND, noted_strategies
from .folders import strategies_directory
from .queue import PartResult, Queue, estimate_of, unfit
from .strategy import ModelBudget, Strategy, StrategyError, Usage
from .token_budget import ConversationBudgetError, TokenBudget
from .writer import MemoryWriter, memory_writer

DOCTOR = "session-memory doctor"


class UnknownStrategyError(StrategyError):
    """No strategy has this id, or it cannot be loaded."""


class PlannedPart(NamedTuple):
    """The plan for a part of a conversation.

    It is skipped for a `reason`, or spends at most `usage`, which costs `dollars` (None for a model
    without a price)."""

    piece: ConversationPart
    reason: str
    usage: Usage
    dollars: float | None


class _StoodQueue(StoredQueue):
    """The queue of a store, whose parts lack messages that a person took back by rewinding."""

    def __init__(self, location: StoreLocation) -> None:
        super().__init__(location.database, location.rules, location.visible)
        self._location = location

    def entries(self, part: ConversationPart) -> tuple[list[StoredEntry], bool]:
        entries, is_known = super().entries(part)
        rewound = self._location.rewound_offsets(part.conversation)
        return [entry for entry in entries if entry.offset not in rewound], is_known


class StrategyRun:
    """The strategies `ids` of a store, with queue and budget; `writer` stores the memories.

    `missing` has the strategies that failed to load, with the reason."""

    def __init__(self, location: StoreLocation, ids: Sequence[str], writer: MemoryWriter) -> None:
        self.settings = location.memory_settings
        self.work = _StoodQueue(location)
        self.budget = TokenBudget(
            self.work.accounts,
            self.settings.tokens_per_day,
            self.settings.tokens_per_conversation,
            now_milliseconds,
        )
        self._queue = Queue(
            writer,
            self.budget,
            self.work,
            now_milliseconds,
            attempts=self.settings.attempts,
        )
        self.strategies: list[Strategy] = []
        self.missing: list[tuple[str, StrategyError]] = []
        for id in ids or self.settings.strategies:
            try:
                self.strategies.append(_load_strategy(id, self.settings, self.budget))
            except StrategyError as error:
                self.missing.append((id, error))
        writer.attach(self.strategies, strategies_directory(location))

    def work_off(
        self,
        *,
        limit: int | None = None,
        statuses: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[PartResult]:
        """Process the queue; yield each outcome. See `Queue.work_off`."""
        ids = tuple(self.settings.strategies)
        return self._queue.work_off(self.strategies, ids, limit=limit, statuses=statuses, stop=stop)

    def reopen(self) -> None:
        """Put the parts that these strategies skipped back into the queue."""
        for strategy in self.strategies:
            self.work.reopen(strategy.id)

    def plan(
        self,
        *,
        limit: int | None = None,
        statuses: tuple[str, ...] = (),
        with_skipped: bool = False,
    ) -> list[PlannedPart]:
        """Return the plan of `work_off`, after `reopen` if `with_skipped`, without executing it."""
        prices = all_prices(self.settings.prices)
        planned: list[PlannedPart] = []
        for strategy in self.strategies:
            skipped = self.work.skipped(strategy.id) if with_skipped else []
            for piece in [
                *skipped,
                *self.work.waiting(strategy.id, now_milliseconds(), statuses),
            ]:
                if limit is not None and len(planned) >= limit:
                    return planned
                planned.append(self._planned(strategy, piece, prices))
        return planned

    def retries(self) -> list[Retry]:
        """Return the conversations that are waiting for a retry, by strategy, the next one
        first."""
        now = now_milliseconds()
        return [
            retry for strategy in self.strategies for retry in self.work.retries(strategy.id, now)
        ]

    def spent_today(self) -> int:
        """Return the tokens counted against today's budget."""
        return self.work.accounts.of_day(now_milliseconds())

    def close(self) -> None:
        """Close the queue."""
        self.work.close()

    def _planned(self, strategy: Strategy, piece: ConversationPart, prices: Prices) -> PlannedPart:
        if piece.result:  # already paid for
            return PlannedPart(piece, "", Usage(), 0.0)
        entries, _ = self.work.entries(piece)
        reason = unfit(strategy, piece, entries)
        usage = Usage() if reason else estimate_of(strategy, piece.conversation, entries)
        try:
            self.budget.check(usage)
        except ConversationBudgetError as error:
            reason, usage = str(error), Usage()
        return PlannedPart(piece, reason, usage, cost(usage, prices))


@contextmanager
def prepared(location: StoreLocation, ids: Sequence[str] = ()) -> Iterator[StrategyRun]:
    """Yield a run with the strategies `ids` (default: the configured ones).

    From here on this process sets the guard that silences our hooks in a runtime that a strategy
    starts. Raises ConfigError, DatabaseError.
    """
    os.environ[ENV_GUARD] = "1"
    with memory_writer(location) as writer, closing(StrategyRun(location, ids, writer)) as run:
        yield run


def known_ids() -> list[str]:
    """Return the ids of the built-in strategies and of those that other packages were found to
    bring."""
    return sorted({*STRATEGIES, *noted_strategies(os.environ)})


def _load_strategy(id: str, settings: MemorySettings, budget: ModelBudget) -> Strategy:
    """Load the strategy with this id.

    Raises UnknownStrategyError, and the strategy's own errors about settings."""
    make = load(STRATEGIES[id]) if id in STRATEGIES else _of_package(id)
    strategy = cast("Strategy", make(settings.section, budget))
    if strategy.id != id:
        raise UnknownStrategyError(
            f"strategy {id}: it calls itself {strategy.id!r}", "fix its package"
        )
    return strategy


def _of_package(id: str) -> Callable[..., object]:
    """Load a strategy that another package brings. Raises UnknownStrategyError."""
    from importlib.metadata import EntryPoint

    place = noted_strategies(os.environ).get(id, "")
    if not place:
        raise unknown_strategy(id)
    try:
        return cast("Callable[..., object]", EntryPoint(id, place, KIND).load())
    except Exception as error:
        raise UnknownStrategyError(
            f"strategy {id}: {place} cannot be loaded: {error}",
            f"if its package has changed, run {DOCTOR}",
        ) from error


def unknown_strategy(id: str) -> UnknownStrategyError:
    """Return the error for a strategy that was not found."""
    return UnknownStrategyError(
        f"unknown strategy {id!r}",
        f"choose one of {', '.join(known_ids())}; if another package has it, first run {DOCTOR}",
    )
