"""The interface of a store's engine. tests/store/test_store_contract.py specifies the methods that read, and
tests/store/test_store_ingest.py those that write.

A machine's own store has all of them; a team's is only read, searched and pushed to (store/postgres/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from .values import Batch, Conversation, Counts, FileState, Filter, Hits, StoredEntry, UnreadFile


class Store(Protocol):
    """Safe to use from several processes at once. Methods raise DatabaseError."""

    def file_states(self, home: str) -> dict[str, FileState]:
        """Return the known files of a group, by key."""

    def write(self, batches: Iterable[Batch]) -> list[FileState | None]:
        """Store all batches or, if anything fails, none. Returns the new state of each file; None for a batch that was
        not stored because another process has read on in its file."""

    def mark_gone(self, home: str, keys: Iterable[str]) -> None:
        """Note that these files are no longer there. Their entries stay."""

    def unread_files(self, home: str) -> dict[str, UnreadFile]:
        """Return the files of a group that failed to ingest, by key."""

    def note_unread(self, home: str, unread: Iterable[UnreadFile], cleared: Iterable[str]) -> None:
        """Note files that failed to ingest, and remove those with the keys `cleared`."""

    def forget(self, home: str, key: str) -> None:
        """Remove a file, its entries and conversations, as if it had never been read."""

    def mark_ready(self, now: int) -> int:
        """Change active conversations that have been silent for longer than the gap to ready, too short ones to
        skipped. Returns how many. `now` is in milliseconds since the epoch."""

    def set_status(self, conversation_id: int, status: str, reason: str = "", *, seen_until: int | None = None) -> bool:
        """Set a conversation's status. Returns False, and changes nothing, if it has messages after `seen_until`."""

    def conversations(self, wanted: Filter) -> list[Conversation]:
        """Return the conversations that fit, the latest first."""

    def conversation_ids(self, wanted: Filter) -> Sequence[int]:
        """Return the ids of the conversations that fit, the earliest first, for reading them one by one."""

    def conversation(self, conversation_id: int, homes: tuple[str, ...] | None = None) -> Conversation | None:
        """Return one conversation; None if there is none of that id in these groups."""

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]:
        """Yield the entries and tool uses of a conversation in file order, with those that a fork copied."""

    def search(self, query: str, wanted: Filter) -> Hits:
        """Return the entries that fit a query best, best first, at most one for each conversation unless there are few.
        Any text is a query. It says how many entries were not read for it that may fit as well."""

    def counts(self, homes: tuple[str, ...] | None = None) -> Counts:
        """Return the sizes of the store."""

    def close(self) -> None:
        """Close the database."""
