"""Strategies turn conversations into memories: their protocol and values.

Times are in milliseconds since 1970. Another package adds a strategy with an entry point of the
group `session_memory.strategies`: a callable that takes the values of the configuration's section
`memories` and a ModelBudget, and returns the strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..common.errors import SessionMemoryError
from ..history.store.values import Conversation, StoredEntry
from ..history.store.values import Usage as Usage  # re-exported for strategies

if TYPE_CHECKING:
    from ..history.recorded import RecordedDetails

    Details = Callable[[Conversation, Sequence[StoredEntry]], RecordedDetails | None]


class Strategy(Protocol):
    """Turns a conversation into memories.

    `id` names it in the queue, the configuration and the memories.

    `entries` are the conversation's entries that it has not processed yet. A strategy that pays for
    a model also has `estimate(conversation, entries) -> Usage`: the most that `process` spends, and
    on which model. Without it the estimate is zero. One that keeps its own files, or builds on
    existing memories, also has `attach(context: StrategyContext)`, called before its first
    conversation."""

    id: str

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        """Return whether the strategy takes the conversation; otherwise it is skipped."""

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return the memories of the entries.

        Raises StrategyError; the queue retries later if that is temporary."""


class TextStrategy:
    """A strategy that takes any conversation with text."""

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        """Return whether there is any text."""
        return any(entry.role != "tool" and entry.text for entry in entries)


class ModelBudget(Protocol):
    """A strategy's token budget. Every call to a model happens within `call`."""

    def call(self, estimate: Usage) -> AbstractContextManager[ModelCall]:
        """Reserve `estimate`, the most that a model call will spend.

        Raises BudgetError if the limit for the day or the conversation does not allow it; then do
        not make the call."""


class ModelCall(Protocol):
    """A model call in progress."""

    def report(self, usage: Usage) -> None:
        """Replace the estimate with the usage that the provider reports (zero if it refused)."""


class StrategyError(SessionMemoryError):
    """A conversation could not be processed; if `is_temporary`, a retry may help."""

    def __init__(self, message: str, hint: str = "", *, is_temporary: bool = False) -> None:
        super().__init__(message, hint)
        self.is_temporary = is_temporary


class UnavailableError(StrategyError):
    """The strategy cannot work now, whatever the conversation: no key, not installed, no
    connection."""


class BudgetError(StrategyError):
    """A model call exceeds the budget and was not made. Strategies do not catch it."""


class Memory(NamedTuple):
    """One piece of knowledge.

    `kind` is episode, project, person, fact, decision, preference, question, solution or rejected.
    `subject` is its project or person ('' if none), `quote` the words of the conversation that
    prove it ('' for an episode), `replaces` the ids of memories that it supersedes. `message` is
    the number of the message that proves it, and `at` its time (0 and None if none)."""

    kind: str
    title: str
    text: str
    subject: str = ""
    quote: str = ""
    replaces: tuple[str, ...] = ()
    message: int = 0
    at: int | None = None


class KnownMemory(NamedTuple):
    """An existing memory, as strategies see it; a new one may name its `id` in `replaces`."""

    id: str
    kind: str
    subject: str
    text: str


class StrategyContext(NamedTuple):
    """Context of a strategy besides its settings.

    `directory` is for its own files. `known(conversation, text, limit)` returns the memories of the
    conversation's group that match `text`. `is_untrusted(conversation)` is true if its memories are
    kept apart. `details(conversation, entries)` returns what only the transcript has of the
    entries, as far as the settings let a model read it."""

    directory: str
    known: Callable[[Conversation, str, int], list[KnownMemory]]
    is_untrusted: Callable[[Conversation], bool] = lambda conversation: False
    details: Details = lambda conversation, entries: None


class MemoryResult(NamedTuple):
    """The memories of a conversation, or the reason for skipping it ('' if not skipped).

    `usage` counts calls made outside `ModelBudget.call`; the others are counted already.
    """

    memories: tuple[Memory, ...] = ()
    skipped: str = ""
    usage: Usage = Usage()
