"""One run over what waits: everything that it takes opened, worked off, and closed again. For `process` and `watch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..store.sqlite.queue import ConversationPart, StoredQueue
from ..text.timestamps import now_milliseconds
from .budget import ConversationBudgetError, TokenBudget
from .prices import all_prices, cost
from .queue import Done, Queue, estimate_of, unfit
from .registry import load
from .strategy import StrategyError, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..settings.memories_values import MemorySettings
    from .prices import Prices
    from .queue import Sink
    from .strategy import Strategy


class Planned(NamedTuple):
    """What a run would do with a piece of work: skip it for a `reason`, or spend `usage` at most, which costs `dollars`
    (None where the model has no price)."""

    piece: ConversationPart
    reason: str
    usage: Usage
    dollars: float | None


class Run:
    """The strategies that were asked for, and what they work with. `missing` are those that cannot be had, and why."""

    def __init__(
        self, database: str, settings: MemorySettings, homes: tuple[str, ...] | None, ids: Sequence[str]
    ) -> None:
        self.settings = settings
        self.homes = homes
        self.work = StoredQueue(database)
        self.budget = TokenBudget(
            self.work.accounts, settings.tokens_per_day, settings.tokens_per_conversation, now_milliseconds
        )
        self.strategies: list[Strategy] = []
        self.missing: list[tuple[str, StrategyError]] = []
        self._database = database
        for id in ids:
            try:
                self.strategies += load([id], settings, self.budget)
            except StrategyError as error:
                self.missing.append((id, error))

    def work_off(
        self,
        keep: Sink,
        *,
        limit: int | None = None,
        statuses: tuple[str, ...] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[Done]:
        """What becomes of each piece of work, what is made of it going to `keep`: see `Queue.work_off`."""
        queue = Queue(
            self._database, keep, self.budget, self.work, now_milliseconds,
            attempts=self.settings.attempts, homes=self.homes,
        )  # fmt: skip
        return queue.work_off(self.strategies, self.settings.strategies, limit=limit, statuses=statuses, stop=stop)

    def reopen(self) -> None:
        """Lets what these strategies skipped be taken up again."""
        for strategy in self.strategies:
            self.work.reopen(strategy.id, self.homes)

    def plan(
        self, *, limit: int | None = None, statuses: tuple[str, ...] = (), with_skipped: bool = False
    ) -> list[Planned]:
        """What `work_off` would do, after `reopen` if `with_skipped`, without doing any of it."""
        prices = all_prices(self.settings.prices)
        planned: list[Planned] = []
        for strategy in self.strategies:
            skipped = self.work.skipped(strategy.id, self.homes) if with_skipped else []
            for piece in [*skipped, *self.work.waiting(strategy.id, now_milliseconds(), self.homes, statuses)]:
                if limit is not None and len(planned) >= limit:
                    return planned
                planned.append(self._planned(strategy, piece, prices))
        return planned

    def spent_today(self) -> int:
        """The tokens that count against today's budget."""
        return self.work.accounts.of_day(now_milliseconds())

    def close(self) -> None:
        """Gives back what is held open."""
        self.work.close()

    def _planned(self, strategy: Strategy, piece: ConversationPart, prices: Prices) -> Planned:
        if piece.result:  # it was paid for already
            return Planned(piece, "", Usage(), 0.0)
        entries, _ = self.work.entries(piece)
        reason = unfit(strategy, piece, entries)
        usage = Usage() if reason else estimate_of(strategy, piece.conversation, entries)
        try:
            self.budget.check(usage)
        except ConversationBudgetError as error:
            reason, usage = str(error), Usage()
        return Planned(piece, reason, usage, cost(usage, prices))


@contextmanager
def opened(
    database: str, settings: MemorySettings, homes: tuple[str, ...] | None, ids: Sequence[str] = ()
) -> Iterator[Run]:
    """A run with the strategies `ids`, or those that are configured."""
    run = Run(database, settings, homes, ids or settings.strategies)
    try:
        yield run
    finally:
        run.close()
