"""What an engine of the store offers. Its behaviour is written down in tests/test_store_contract.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from .values import Batch, Conversation, Counts, FileState, Filter, Hit, StoredEntry


class Store(Protocol):
    """All of it is safe to call from several processes at once. Methods raise DatabaseError."""

    def file_states(self, home: str) -> dict[str, FileState]:
        """The known files of a group, by key."""

    def write(self, batches: Iterable[Batch]) -> list[FileState | None]:
        """Stores all of the batches or, if anything fails, none. Returns the state of each file as it now is; None for
        a batch whose file somebody else has read on in the meantime: of that one nothing is stored."""

    def mark_gone(self, home: str, keys: Iterable[str]) -> None:
        """Notes that these files are no longer there. Their entries stay."""

    def forget(self, home: str, key: str) -> None:
        """Removes a file, its entries and conversations, as if it had never been read."""

    def mark_ready(self, now: int) -> int:
        """Makes active conversations that are silent for longer than the gap ready, or skipped where they are too
        short; how many. `now` is in milliseconds since the epoch."""

    def set_status(self, conversation_id: int, status: str, reason: str = "", *, seen_until: int | None = None) -> bool:
        """Sets a conversation's status; False, and nothing done, if it has messages later than `seen_until`."""

    def conversations(self, wanted: Filter) -> list[Conversation]:
        """The conversations that fit, the latest first."""

    def conversation(self, conversation_id: int, homes: tuple[str, ...] | None = None) -> Conversation | None:
        """One conversation; None if there is none of that id in these groups."""

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]:
        """The entries and tool uses of a conversation in file order, those that a fork took over among them."""

    def search(self, query: str, wanted: Filter) -> list[Hit]:
        """The entries that fit a query best, best first, at most one for each conversation unless there are few.
        Any text is a query."""

    def counts(self, homes: tuple[str, ...] | None = None) -> Counts:
        """How much there is."""

    def close(self) -> None:
        """Gives back what the store holds open."""
