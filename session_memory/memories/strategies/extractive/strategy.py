"""The strategy without a model: quotes requests, decisions, facts, rejections and solutions from a conversation, and
lists what was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...format import EPISODE, REJECTED
from ...strategy import Memory, MemoryResult
from .episode import asks, commits, edited_files, episode_text, is_worth_telling, shortest_names, title_of
from .solutions import solutions
from .statements import statements, takes_back

if TYPE_CHECKING:
    from ....store.values import Conversation, StoredEntry
    from ...strategy import Budget, StrategyContext

MOST_OF_A_KIND = 12  # of a conversation; the last ones
KNOWN = 20  # memories that a rejection may supersede
NOTHING = "no text"


class ExtractiveStrategy:
    """The `Strategy` of heuristics: free, offline, and only with words of the conversation."""

    id = "extractive"

    def __init__(self, values: Mapping[str, Any], budget: Budget) -> None:
        """Accept the arguments of every strategy; it has no settings and spends nothing."""
        self._context: StrategyContext | None = None

    def attach(self, context: StrategyContext) -> None:
        """Use existing memories, so that a rejection can supersede them."""
        self._context = context

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        """Return whether there is any text."""
        return any(entry.role != "tool" and entry.text for entry in entries)

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        """Return an episode, if something was done or said, and items with their quotations."""
        said = [entry.text for entry in entries if entry.role == "user" and entry.text]
        requests = [text for text in said if asks(text)] or said
        names = shortest_names([entry for entry in entries if entry.role == "tool"], conversation.cwd)
        subject = conversation.cwd.rstrip("/").rpartition("/")[2]
        items = [*self._stated(conversation, entries, subject), *_solved(entries, names, subject)]
        memories = [item for kind in dict.fromkeys(item.kind for item in items) for item in _last(items, kind)]
        if items or is_worth_telling(entries):
            edited = [names[path] for path, _ in edited_files(entries).most_common()]
            title = title_of(conversation.title, requests, commits(entries), edited)
            memories.insert(0, Memory(EPISODE, title, episode_text(entries, requests, names), subject))
        return MemoryResult(tuple(memories), "" if memories else NOTHING)

    def _stated(self, conversation: Conversation, entries: Sequence[StoredEntry], subject: str) -> Iterator[Memory]:
        for one in statements(entries):
            replaces = self._taken_back(conversation, one.title) if one.kind == REJECTED else ()
            yield Memory(one.kind, one.title, "", subject, one.quote, replaces, one.entry.number, one.entry.timestamp)

    def _taken_back(self, conversation: Conversation, rejection: str) -> tuple[str, ...]:
        """Return the ids of memories that state what is rejected here."""
        if self._context is None:
            return ()
        known = self._context.known(conversation, rejection, KNOWN)
        return tuple([one.id for one in known if one.kind != REJECTED and takes_back(rejection, one.text)])


def _solved(entries: Sequence[StoredEntry], names: Mapping[str, str], subject: str) -> Iterator[Memory]:
    for one in solutions(entries):
        title, text, quote = one.told(names)
        yield Memory("solution", title, text, subject, quote, (), one.failed.number, one.passed.timestamp)


def _last(items: Sequence[Memory], kind: str) -> list[Memory]:
    return [item for item in items if item.kind == kind][-MOST_OF_A_KIND:]
