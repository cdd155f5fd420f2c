"""What a strategy is, and what it makes of a conversation. Times are in milliseconds since the epoch.

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

        `entries` are those that it has not seen of the conversation: all of them, or what came after the last time.
        A strategy that pays for a model also has `estimate(conversation, entries) -> Usage`: what `process` will
        spend at most, and on which model; without it nothing is taken to be spent. One that keeps something of its
        own, or builds on what is known already, also has `attach(surroundings)`, called before its first piece.
        """

        id: str

        def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
            """Whether there is anything in it for this strategy; what is not is skipped."""

        def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
            """What it makes of the entries. Raises StrategyError; the queue tries again later if that may help."""

    class Budget(Protocol):
        """What a strategy may spend. Every call to a model is made within `call`."""

        def call(self, estimate: Usage) -> AbstractContextManager[Call]:
            """To be entered before a call to a model that will spend at most `estimate`. Raises BudgetError if that
            does not fit what is left of the day or of the conversation: the call must not be made then."""

    class Call(Protocol):
        """A call to a model that is being made."""

        def report(self, usage: Usage) -> None:
            """Takes what the provider says the call spent (nothing, where it refused it) in the estimate's place."""


class StrategyError(SessionMemoryError):
    """Nothing could be made of this conversation; if `is_temporary`, trying again later may help."""

    def __init__(self, message: str, hint: str = "", *, is_temporary: bool = False) -> None:
        super().__init__(message, hint)
        self.is_temporary = is_temporary


class UnavailableError(StrategyError):
    """The strategy cannot work at all for now, whatever the conversation: no key, not installed, no connection."""


class BudgetError(StrategyError):
    """A call to a model does not fit the budget, so it was not made. Strategies let it through to the queue."""


class Memory(NamedTuple):
    """One piece of knowledge. `kind` is episode, project, person, fact, decision, preference, question or solution;
    `subject` what it is about (a project, a person, '' for none), `quote` the words of the conversation that bear it
    out ('' where all of it does), `replaces` the ids of memories that it supersedes."""

    kind: str
    title: str
    text: str
    subject: str = ""
    quote: str = ""
    replaces: tuple[str, ...] = ()


class KnownMemory(NamedTuple):
    """A memory that there is already, as a strategy gets to see it; `id` may stand in the `replaces` of a new one."""

    id: str
    kind: str
    subject: str
    text: str


class StrategyContext(NamedTuple):
    """What a strategy may work with beside its settings: `directory`, where it may keep things of its own;
    `known(conversation, text, limit)`, the memories of the conversation's group that `text` seems to be about; and
    whether what is said in a conversation `is_untrusted`, so that it is to be kept apart."""

    directory: str
    known: Callable[[Conversation, str, int], list[KnownMemory]]
    is_untrusted: Callable[[Conversation], bool] = lambda conversation: False


class MemoryResult(NamedTuple):
    """What became of a conversation: memories, or the reason why it was skipped ('' if it was not).

    `usage` is what all calls spent together; it counts against the budget where they were not made within `call`."""

    memories: tuple[Memory, ...] = ()
    skipped: str = ""
    usage: Usage = Usage()
