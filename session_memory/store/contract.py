"""What an engine of the store offers. tests/store/test_store_contract.py says how each method behaves that reads, and
tests/store/test_store_ingest.py how each that writes.

A machine's own store offers all of it; a team's is read from and searched, and is pushed to (store/postgres/)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from .values import Batch, Conversation, Counts, FileState, Filter, Hits, StoredEntry, UnreadFile


class Store(Protocol):
    """Safe to use from several processes at once. Methods raise DatabaseError."""

    def file_states(self, home: str) -> dict[str, FileState]:
        """The known files of a group, by key."""

    def write(self, batches: Iterable[Batch]) -> list[FileState | None]:
        """Stores all batches or, if anything fails, none. Returns the new state of each file; None for a batch that was
        not stored because another process has read on in its file."""

    def mark_gone(self, home: str, keys: Iterable[str]) -> None:
        """Notes that these files are no longer there. Their entries stay."""

    def unread_files(self, home: str) -> dict[str, UnreadFile]:
        """The files of a group that could not be taken in, by key."""

    def note_unread(self, home: str, unread: Iterable[UnreadFile], cleared: Iterable[str]) -> None:
        """Notes files that could not be taken in, and strikes out those with the keys `cleared`."""

    def forget(self, home: str, key: str) -> None:
        """Removes a file, its entries and conversations, as if it had never been read."""

    def mark_ready(self, now: int) -> int:
        """Changes active conversations that have been silent for longer than the gap to ready, too short ones to
        skipped. Returns how many. `now` is in milliseconds since the epoch."""

    def set_status(self, conversation_id: int, status: str, reason: str = "", *, seen_until: int | None = None) -> bool:
        """Sets a conversation's status. Returns False, and changes nothing, if it has messages after `seen_until`."""

    def conversations(self, wanted: Filter) -> list[Conversation]:
        """The conversations that fit, the latest first."""

    def conversation_ids(self, wanted: Filter) -> Sequence[int]:
        """The ids of the conversations that fit, the earliest first: for whoever reads all of them, one by one."""

    def conversation(self, conversation_id: int, homes: tuple[str, ...] | None = None) -> Conversation | None:
        """One conversation; None if there is none of that id in these groups."""

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]:
        """The entries and tool uses of a conversation in file order, with those that a fork copied."""

    def search(self, query: str, wanted: Filter) -> Hits:
        """The entries that fit a query best, best first, at most one for each conversation unless there are few.
        Any text is a query. It says how many entries were not read for it that may fit as well."""

    def counts(self, homes: tuple[str, ...] | None = None) -> Counts:
        """How much there is."""

    def close(self) -> None:
        """Closes the database."""
