"""Strategies, which turn conversations into memories: their protocol and values. Times are in milliseconds since the
epoch.

A third party adds one by an entry point of the group `session_memory.strategies`: a callable that takes the values of
the configuration's section `memories` and a Budget, and returns the strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..store.values import Usage as Usage  # strategies have it from here

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    from ..store.values import Conversation, StoredEntry

    class Strategy(Protocol):
        """Turns a conversation into memories. `id` names it in the queue, the configuration and the memories.

        `entries` are those of the conversation that it has not been given yet. A strategy that pays for a model also
        has `estimate(conversation, entries) -> Usage`: what `process` spends at most, and on which model; without it
        the estimate is nothing. One that keeps files of its own, or builds on memories that there are, also has
        `attach(context: StrategyContext)`, which is called before its first conversation.
        """

        id: str

        def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
            """Whether the strategy takes the conversation; otherwise it is skipped."""

        def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
            """The memories of the entries. Raises StrategyError; the queue tries again later if that is temporary."""

    class Budget(Protocol):
        """What a strategy may spend. Every call to a model is made within `call`."""

        def call(self, estimate: Usage) -> AbstractContextManager[Call]:
            """Reserves `estimate`, the most that a call to a model will spend. Raises BudgetError if that does not fit
            what is left for the day or the conversation; the call must not be made then."""

    class Call(Protocol):
        """A call to a model that is being made."""

        def report(self, usage: Usage) -> None:
            """Replaces the estimate by what the provider reports for the call (nothing, where it refused it)."""


class StrategyError(SessionMemoryError):
    """A conversation could not be processed; if `is_temporary`, trying again later may help."""

    def __init__(self, message: str, hint: str = "", *, is_temporary: bool = False) -> None:
        super().__init__(message, hint)
        self.is_temporary = is_temporary


class UnavailableError(StrategyError):
    """The strategy cannot work for now, whatever the conversation: no key, not installed, no connection."""


class BudgetError(StrategyError):
    """A call to a model does not fit the budget, so it was not made. Strategies do not catch it."""


class Memory(NamedTuple):
    """One piece of knowledge. `kind` is episode, project, person, fact, decision, preference, question, solution or
    rejected; `subject` is what it is about (a project, a person, '' for none), `quote` the words of the conversation
    that prove it ('' for an episode), `replaces` the ids of memories that it supersedes. `message` is the number of the
    message that bears it out, and `at` its time (0 and None for no single one)."""

    kind: str
    title: str
    text: str
    subject: str = ""
    quote: str = ""
    replaces: tuple[str, ...] = ()
    message: int = 0
    at: int | None = None


class KnownMemory(NamedTuple):
    """A memory that there is already, as strategies see it; a new one may name its `id` in `replaces`."""

    id: str
    kind: str
    subject: str
    text: str


class StrategyContext(NamedTuple):
    """What a strategy gets beside its settings: `directory`, for files of its own; `known(conversation, text, limit)`,
    the memories of the conversation's group that `text` seems to be about; `is_untrusted(conversation)`, whether its
    memories are kept apart."""

    directory: str
    known: Callable[[Conversation, str, int], list[KnownMemory]]
    is_untrusted: Callable[[Conversation], bool] = lambda conversation: False


class MemoryResult(NamedTuple):
    """The memories of a conversation, or the reason why it was skipped ('' if it was not).

    `usage` is what calls spent that were not made within `Budget.call`; the others are counted already."""

    memories: tuple[Memory, ...] = ()
    skipped: str = ""
    usage: Usage = Usage()
