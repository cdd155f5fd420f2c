"""A token budget, which refuses every model call whose estimate exceeds the remaining tokens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..history.store.sqlite.queue_database import TokenAccounts
from .strategy import BudgetError, ModelCall, Usage


class ConversationBudgetError(BudgetError):
    """A conversation needs more tokens than one may spend."""


class TokenBudget:
    """A `strategy.ModelBudget` in the store, so processes share the day's limit.

    The queue opens an account for each attempt at a conversation; the account counts its calls.
    `clock` returns milliseconds since 1970."""

    def __init__(
        self,
        accounts: TokenAccounts,
        day_limit: int,
        conversation_limit: int,
        clock: Callable[[], int],
    ) -> None:
        self._day_limit = day_limit
        self._limit = min(conversation_limit, day_limit)  # of one account
        self._accounts = accounts
        self._clock = clock
        self._account: int | None = None

    def open(self, strategy: str, conversation_id: int, estimate: Usage) -> int:
        """Open the account of an attempt, reserve its estimate and return its id.

        Raises BudgetError."""
        self._account = None
        self.check(estimate)
        self._account = self._accounts.open(
            strategy, conversation_id, estimate, self._clock(), self._day_limit
        )
        if self._account is None:
            raise BudgetError(self._day_is_spent())
        return self._account

    def check(self, estimate: Usage) -> None:
        """Raise ConversationBudgetError if `estimate` exceeds the limit for one conversation."""
        if estimate.tokens > self._limit:
            raise self._too_much(estimate.tokens)

    @contextmanager
    def call(self, estimate: Usage) -> Iterator[ModelCall]:
        """Reserve `estimate` during a call, then count the reported usage instead.

        Raises BudgetError."""
        if self._account is None:
            raise BudgetError("a model call outside the queue has no budget account")
        account = self._account
        left = self._accounts.begin_call(account, estimate, self._day_limit, self._limit)
        if left is not None:
            of_day, of_conversation = left
            if estimate.tokens > of_conversation:
                raise self._too_much(self._limit - of_conversation + estimate.tokens)
            raise BudgetError(
                f"{self._day_is_spent()}: {of_day:,} are left; the next call needs "
                f"{estimate.tokens:,}"
            )
        yield _Call(self._accounts, account, estimate)

    def _day_is_spent(self) -> str:
        spent = self._accounts.of_day(self._clock())
        return (
            f"today's budget of {self._day_limit:,} tokens is used up: {spent:,} spent or reserved"
        )

    def _too_much(self, needed: int) -> BudgetError:
        return ConversationBudgetError(
            f"budget: needs about {needed:,} tokens, {self._limit:,} are allowed"
        )


class _Call:
    """A call in progress; only its first report counts."""

    def __init__(self, accounts: TokenAccounts, account: int, estimate: Usage) -> None:
        self._accounts = accounts
        self._account = account
        self._estimate = estimate
        self._is_reported = False

    def report(self, usage: Usage) -> None:
        if not self._is_reported:
            self._is_reported = True
            self._accounts.end_call(self._account, self._estimate, checked(usage))


def checked(usage: Usage) -> Usage:
    """Return `usage` with negative numbers replaced by 0."""
    return Usage(
        max(0, usage.input_tokens),
        max(0, usage.output_tokens),
        max(0, usage.cached_tokens),
        usage.model,
    )
