"""A machine's own store in one SQLite file. search_index.py has the part for searches.

tests/history/store/test_store_contract.py specifies the methods that read, which the team's engine
(postgres/engine.py) has too. tests/history/store/test_store_ingest.py specifies the methods that
write.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ....common.system.sqlite import Connection, Patience, compact, fetch
from ....common.text.format import one_line
from ....sessions.transcripts.reader import FIRST_PROMPT_RANK, later_request
from ...search.search import search
from ..rules import StoreRules
from ..values import (
    ITEM_BITS,
    NUMBERS,
    Conversation,
    Counts,
    Filter,
    Hits,
    StoredEntry,
    Visible,
)
from .corruption import StoreDatabase
from .exclusions import (
    FILES_WITH_EXCLUDED,
    Exclusions,
    VisibilityOverrides,
    apply,
    is_behind,
    item_shown,
)
from .rows import (
    CONVERSATIONS,
    conversation_columns,
    conversation_of,
    ids_of,
    items_between,
    listed,
    where,
)
from .search_index import KnownTables, SqliteSearchIndex

if TYPE_CHECKING:
    from ..ingest.values import Batch, FileState, UnreadFile
    from .written_lines import TimedCall, WrittenLine

MOST_SCANS = 10  # of all keys, before an index takes less time
_BY_ITEM = {
    "memory_item_keys_by_id": "memory_item_keys (id)",
    "memory_written_lines_by_item": "memory_written_lines (item)",
}
_FORGOTTEN_AT_ONCE = 200  # files: other processes wait meanwhile
_REQUEST_CHARACTERS = 2000  # of a message: it may begin with a pasted text
_READ_ITEMS = 1000  # of a conversation, at a time: some have a hundred thousand


class SqliteStore(StoreDatabase):
    """The store, safe to use from several processes at once. Methods raise DatabaseError.

    A silence of more than `gap` milliseconds ends a conversation. A conversation with fewer than
    `least_messages` is skipped. Content that `rules` exclude is hidden, except as `overrides`
    permit."""

    def __init__(
        self,
        path: str,
        *,
        gap: int = 3_600_000,
        least_messages: int = 5,
        patience: Patience | None = None,
        rules: StoreRules | None = None,
        overrides: VisibilityOverrides | None = None,
        visible: Visible = None,
    ) -> None:
        super().__init__(path, patience)
        self._gap = gap
        self._least_messages = least_messages
        self._rules = rules
        self.visible = visible
        self._exclusions = Exclusions(self.connection, rules, overrides)
        self._tables = KnownTables()

    def is_empty(self) -> bool:
        """Check that no file was ever stored."""
        return not self.rows("SELECT 1 FROM memory_file_states LIMIT 1")

    def holds_memories(self) -> bool:
        return bool(self.rows("SELECT 1 FROM memories LIMIT 1"))

    def limit_cache(self, kibibytes: int) -> None:
        self.connection.execute(f"PRAGMA cache_size = -{kibibytes}")

    def is_excluding(self) -> bool:
        """Check if rules exclude anything.

        Afterwards the tables of exclusions.py are up to date."""
        with self.explained():
            return self._exclusions.ready()

    def excluded_files(self) -> set[int]:
        """Return the ids of the files that rules exclude, or whose text they exclude."""
        if not self.is_excluding():
            return set()
        return {file_id for (file_id,) in self.rows("SELECT file_id FROM memory_excluded_files")}

    def files_with_excluded(self) -> set[int]:
        """Return the ids of the files of which rules exclude a part, or all.

        An excluded part may also be in another file. Files with only their text excluded do not
        count."""
        if not self.is_excluding():
            return set()
        return {file_id for (file_id,) in self.rows(FILES_WITH_EXCLUDED)}

    def apply_rules(self) -> None:
        """Update the tables of exclusions if the rules have changed, for readers of the views."""
        with self.explained():
            if self._rules is None or not is_behind(self.connection):
                return
        with self.transaction() as connection:
            apply(connection, self._rules)

    def file_states(self, home: str) -> dict[str, FileState]:
        """Return the known files of a group, by key."""
        from ..ingest.values import FileState
        from ._writer import SELECT_STATE

        return {row[1]: FileState._make(row) for row in self.rows(SELECT_STATE, (home,))}

    def directories(self) -> list[str]:
        """Return the directories that sessions were started in."""
        return [
            cwd
            for (cwd,) in self.rows("SELECT DISTINCT cwd FROM memory_file_states WHERE cwd != ''")
        ]

    def write(self, batches: Iterable[Batch]) -> list[FileState | None]:
        """Store all batches or, if anything fails, none. Return the new state of each file.

        The state is None for a batch that was not stored, because another process has read further
        in its file."""
        from ....sessions.settings import forgotten
        from ._writer import without_forgotten, write  # a search does without it
        from .written_lines import insert as insert_lines

        with self.transaction() as connection:
            # Read the tombstones within the transaction: a process that forgets first records this,
            # then waits to delete.
            if tombstones := forgotten.read(self.path):
                messages = forgotten.ForgottenMessages(self.path)
                batches = [without_forgotten(batch, tombstones, messages) for batch in batches]
            lines: list[tuple[int, int]] = []
            written = [write(connection, batch, self._gap, lines) for batch in batches]
            insert_lines(connection, lines)  # in the order of their hashes: each page once
            apply(connection, self._rules, [state.id for state in written if state])
            return written

    def compact(self) -> None:
        """Merge the parts of the search index into one, and write the file anew in order.

        The file of a first import shrinks by a twentieth."""
        with self.transaction() as connection:
            connection.execute("INSERT INTO memory_search (memory_search) VALUES ('optimize')")
        with self.explained():
            compact(self.connection)

    def incomplete_sessions(self, home: str) -> set[str]:
        """Return the ids of a group's sessions that lost messages no transcript brought back."""
        sql = (
            "SELECT f.session_id FROM memory_incomplete_files JOIN memory_file_states AS f ON "
            "f.id = file_id "
            "WHERE f.home = ?"
        )
        return {session_id for (session_id,) in self.rows(sql, (home,))}

    def mark_gone(self, home: str, keys: Iterable[str]) -> None:
        """Note that these files no longer exist. Their entries stay, their counts go.

        Rules are applied to them again, because an emptied mirror goes with the rule for it."""
        keys = list(keys)
        with self.transaction() as connection:
            for key in keys:
                _forget_counts(connection, home, key)
            connection.executemany(
                "UPDATE memory_file_states SET status = 'gone' WHERE home = ? AND file_path = ?",
                [(home, key) for key in keys],
            )
            sql = "SELECT id FROM memory_file_states WHERE home = ? AND file_path = ?"
            ids = [id for key in keys for (id,) in fetch(connection, sql, (home, key))]
            apply(connection, self._rules, ids)

    def unread_files(self, home: str) -> dict[str, UnreadFile]:
        """Return the files of a group that failed to ingest, by key."""
        from ..ingest.values import UnreadFile

        rows = self.rows("SELECT * FROM memory_unread_files WHERE home = ?", (home,))
        return {row[1]: UnreadFile._make(row) for row in rows}

    def note_unread(self, home: str, unread: Iterable[UnreadFile], cleared: Iterable[str]) -> None:
        """Note files that failed to ingest, and remove those with the keys `cleared`."""
        with self.transaction() as connection:
            connection.executemany(
                "DELETE FROM memory_unread_files WHERE home = ? AND file_path = ?",
                [(home, key) for key in cleared],
            )
            connection.executemany(
                "REPLACE INTO memory_unread_files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", unread
            )

    def forget(self, home: str, *keys: str) -> None:
        """Remove files, their entries and conversations, as if they had never been read."""
        from ._writer import remove

        for at in range(0, len(keys), _FORGOTTEN_AT_ONCE):
            batch = keys[at : at + _FORGOTTEN_AT_ONCE]
            with self._deleting(len(batch)) as connection:
                for key in batch:
                    _forget_counts(connection, home, key)
                    sql = "SELECT id FROM memory_file_states WHERE home = ? AND file_path = ?"
                    for (file_id,) in fetch(connection, sql, (home, key)):
                        remove(connection, file_id)

    def rename_files(
        self, home: str, root: str, keys: Mapping[str, str], whole: Collection[str]
    ) -> None:
        """Rename files of a group to keys below `root`: see `_renamed_files.rename`."""
        from ._renamed_files import rename, rename_in_queue

        # first, since a commit to both databases is not atomic: no conversation is processed again
        rename_in_queue(self.path, home, keys.items())
        with self._deleting(len(keys)) as connection:
            for key in keys:
                _forget_counts(connection, home, key)  # these have the old name
            apply(connection, self._rules, rename(connection, home, root, keys, whole))

    @contextmanager
    def _deleting(self, count: int) -> Iterator[Connection]:
        """Delete `count` files or conversations in the block, in one transaction.

        Each deletion scans all keys, unless they have an index, which ingest does not need: 2,000
        conversations of 20,000 took 155 s. So an index is made for many deletions."""
        indexes = _BY_ITEM if count > MOST_SCANS else {}
        with self.transaction() as connection:
            for name, columns in indexes.items():
                connection.execute(f"CREATE INDEX {name} ON {columns}")
            yield connection
            for name in indexes:
                connection.execute(f"DROP INDEX {name}")
            # items that other files shared with deleted items now have other ids
            apply(connection, None)

    def marks(self, conversations: Iterable[Conversation]) -> list[str]:
        """Return the marks of the messages and titles in conversations (see transcripts.marks)."""
        from ._forgotten_items import marks_of_conversations

        with self.explained():
            return list(marks_of_conversations(self.connection, _ids_of(conversations)))

    def conversations_with_copies(
        self, conversations: Iterable[Conversation]
    ) -> list[tuple[Conversation, int]]:
        """Return the conversations of other files, such as forks, that have copies of these.

        Each comes with the time of its latest copy, in milliseconds since the epoch."""
        from ._forgotten_items import conversations_with, copies_of

        with self.explained():
            copied_at = conversations_with(
                self.connection, copies_of(self.connection, _ids_of(conversations))
            )
        return (
            [(each, copied_at[each.id]) for each in self.all_conversations(copied_at)]
            if copied_at
            else []
        )

    def forget_copies(self, conversations: Iterable[Conversation]) -> None:
        """Delete the copies that other files have of these conversations."""
        from ._forgotten_items import copies_of, remove_copies
        from .queue_database import forget_conversations

        chosen = list(conversations)
        touched = [conversation for conversation, _ in self.conversations_with_copies(chosen)]
        if not touched:
            return
        try:
            forget_conversations(self.path, touched)
        finally:  # also if the queue is damaged
            ids = _ids_of(chosen)
            with self._deleting(len(touched)) as connection:
                remove_copies(connection, ids, copies_of(connection, ids), self._gap)
                _drop_old_terms(connection)

    def forget_conversations(self, conversations: Iterable[Conversation]) -> None:
        """Delete conversations with everything made of them, except memories.

        Files without any other conversation are deleted too. `drop_free_pages` then deletes their
        bytes."""
        from .queue_database import forget_conversations

        conversations = list(conversations)
        try:
            forget_conversations(self.path, conversations)
        finally:  # also if the queue is damaged
            self._forget_conversations(conversations)

    def _forget_conversations(self, conversations: list[Conversation]) -> None:
        from ._writer import drop_made_title, remove, remove_items
        from .counted_files import CountedFiles

        with self._deleting(len(conversations)) as connection:
            CountedFiles.forget(connection)
            for conversation in conversations:
                sql = "SELECT file_id, first_item, last_item FROM memory_conversations WHERE id = ?"
                for file_id, first, last in fetch(connection, sql, (conversation.id,)):
                    remove_items(connection, first, last)
                    if not fetch(
                        connection,
                        "SELECT 1 FROM memory_conversations WHERE file_id = ?",
                        (file_id,),
                    ):
                        remove(connection, file_id)
                    else:
                        drop_made_title(connection, file_id)
            _drop_old_terms(connection)

    def redact_again(self, seconds: float) -> None:
        """Redact text stored under earlier rules, for `seconds`; the next call continues.

        After the last call no byte of a secret is left in the database. Raises DatabaseError."""
        from . import redaction
        from .counted_files import CountedFiles

        with self.explained():
            known = redaction.state(self.connection)
        deadline = time.monotonic() + seconds
        while not known.is_done and time.monotonic() < deadline:
            with self.transaction() as connection:
                known = redaction.redact_some(connection, redaction.state(connection))
                if known.is_done and CountedFiles.forget_outdated(connection):
                    known = known._replace(is_changed=True)
                    redaction.keep(connection, known)
        if known.is_done and known.is_changed:
            with self.transaction() as connection:
                _drop_old_terms(connection)
            self.drop_free_pages()
            with self.transaction() as connection:
                redaction.keep(connection, known._replace(is_changed=False))

    def line_writers(self, hashes: Iterable[int]) -> list[WrittenLine]:
        """Return the items that wrote the lines with these hashes: see written_lines.py."""
        from .written_lines import writers

        return writers(self, hashes)

    def conversations_near(self, directory: str, at: int, within: int) -> list[Conversation]:
        """Return the conversations in or below a directory, at most `within` from the time `at`.

        Both are in milliseconds."""
        return self.conversations(
            Filter(
                directories=(directory,),
                since=at - within,
                until=at + within,
                limit=1000,
            )
        )

    def calls_between(self, since: int, until: int) -> list[TimedCall]:
        """Return sessions' and sub-agents' edits and commands between two times.

        The earliest come first: see written_lines.py."""
        from ._sub_agent_calls import between
        from .written_lines import calls_between

        calls = [*calls_between(self, since, until), *between(self, since, until)]
        return sorted(calls, key=lambda call: (call.item.at or 0, call.item.item))

    def sub_agent_calls(self, conversation_id: int) -> list[StoredEntry]:
        """Return the calls of a conversation's sub-agents that write files or run git.

        See sub_agent_calls.py."""
        from ._sub_agent_calls import of_conversation

        return of_conversation(self, conversation_id)

    def running_at(
        self, conversations: Sequence[Conversation], first: int, last: int
    ) -> list[Conversation]:
        """Return the conversations with a running turn between two times: see times_of_work.py."""
        from ._times_of_work import running_at

        return running_at(self, conversations, first, last)

    def redacted_share(self) -> float:
        """Return how much of the store is redacted by the current rules, from 0 to 1."""
        from .redaction import share_done

        with self.explained():
            return share_done(self.connection)

    def drop_free_pages(self) -> None:
        """Rewrite the database and its queue, so no deleted text is left in free pages or the log.

        Raises LockedDatabaseError if another program reads the old pages."""
        from .queue_database import drop_free_pages

        drop_free_pages(self.path)

    def all_conversations(self, ids: Iterable[int] | None = None) -> list[Conversation]:
        """Return all conversations, or those with these ids, for a person who forgets.

        Excluded conversations are included."""
        condition, values = where(Filter(), self.visible)
        if ids is not None:
            condition, values = f"{condition} AND c.id IN carray(?)", [*values, ids_of(ids)]
        columns = conversation_columns(excluding=False)
        sql = (
            f"SELECT {columns} FROM {CONVERSATIONS} WHERE {condition} ORDER BY "
            f"c.last_message_at, c.id"
        )
        return [conversation_of(row) for row in self.rows(sql, values)]

    def mark_ready(self, now: int) -> int:
        """Mark active conversations that have been silent for longer than the gap as ready.

        Too short ones are marked as skipped. Return the number of both. `now` is in milliseconds
        since the epoch."""
        with self.transaction() as connection:
            sql = (
                "UPDATE memory_conversations SET "
                "status = iif(entry_count < ?, 'skipped', 'ready'), reason = iif(entry_count < "
                "?, 'too short', '') "
                "WHERE status = 'active' AND coalesce(last_message_at, 0) < ?"
            )
            connection.execute(sql, (self._least_messages, self._least_messages, now - self._gap))
            return connection.changes()

    def conversations(self, wanted: Filter) -> list[Conversation]:
        """Return the conversations that fit, the latest first."""
        return self._conversations(
            wanted, "ORDER BY c.last_message_at DESC, c.id DESC LIMIT ?", wanted.limit
        )

    def conversation_ids(self, wanted: Filter) -> Sequence[int]:
        """Return the ids of the conversations that fit, the earliest first, to read them singly."""
        condition, values = listed(wanted, self.visible, self.is_excluding())
        sql = (
            f"SELECT c.id FROM {CONVERSATIONS} WHERE {condition} ORDER BY c.first_message_at, "
            f"c.id LIMIT ?"
        )
        with self.explained():
            return array(
                "q", (id for (id,) in self.connection.execute(sql, (*values, wanted.limit)))
            )

    def conversation(self, conversation_id: int) -> Conversation | None:
        """Return one conversation; None if there is none of that id."""
        return next(iter(self._conversations(Filter(), "AND c.id = ?", conversation_id)), None)

    def later_requests(self, conversations: Iterable[Conversation]) -> dict[int, str]:
        """Return, by the conversation's id, the last request in its session until its end.

        It is missing if the session is not named after its first request, or has no other one.
        Messages are read backward until one says enough."""
        shown = f"AND {item_shown('id')}" if self.is_excluding() else ""
        last_item = (
            f"SELECT c.last_item FROM {CONVERSATIONS} "
            f"WHERE c.id = ? AND f.title_rank <= {FIRST_PROMPT_RANK}"
        )
        said = (
            f"SELECT substr(content, 1, {_REQUEST_CHARACTERS}) FROM memory_transcript_entries "
            f"WHERE id BETWEEN ? AND ? AND role = 'user' {shown} ORDER BY id DESC"
        )
        requests = {}
        for conversation in conversations:
            for (last,) in self.rows(last_item, (conversation.id,)):
                with (
                    self.explained(),
                    closing(self.connection.execute(said, (last & ~NUMBERS, last))) as rows,
                ):
                    texts = (text for (text,) in rows)
                    later = later_request(one_line(conversation.title), texts)
                if later:
                    requests[conversation.id] = one_line(later)
        return requests

    def _conversations(
        self, wanted: Filter, condition_or_order: str, value: int
    ) -> list[Conversation]:
        excluding = self.is_excluding()
        condition, values = listed(wanted, self.visible, excluding)
        sql = (
            f"SELECT {conversation_columns(excluding)} FROM {CONVERSATIONS} WHERE {condition} "
            f"{condition_or_order}"
        )
        return [conversation_of(row) for row in self.rows(sql, (*values, value))]

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]:
        """Yield the entries and tool uses of a conversation in file order, with a fork's copies."""
        first, last = self.item_ids(conversation_id)
        for begin in range(first, last + 1, _READ_ITEMS):
            yield from self.items(begin, min(begin + _READ_ITEMS - 1, last))

    def item_ids(self, conversation_id: int) -> tuple[int, int]:
        """Return the ids of a conversation's first and last item; (0, -1) if it does not exist."""
        sql = "SELECT first_item, last_item FROM memory_conversations WHERE id = ?"
        return next(((first, last) for first, last in self.rows(sql, (conversation_id,))), (0, -1))

    def items(self, first: int, last: int) -> list[StoredEntry]:
        """Return the items of one file from one id to another, except excluded ones."""
        excluding = self.is_excluding()
        with self.explained():
            return items_between(self.connection, first, last, excluding=excluding)

    def search(self, query: str, wanted: Filter) -> Hits:
        """Return the entries that fit a query best, the best first. Any text is a query.

        There is at most one entry for each conversation, unless there are few. `Hits.unchecked`
        counts entries that were not read for it."""
        excluding = self.is_excluding()
        with self.explained():
            index = SqliteSearchIndex(
                self.connection, self._tables, self.visible, excluding=excluding
            )
            hits = search(index, query, wanted)
        if wanted.session:
            hits.origins = self._origins(wanted, excluding)
        return hits

    def _origins(self, wanted: Filter, excluding: bool) -> list[str]:
        """Return the ids of sessions from which the wanted session copied items that were found."""
        condition, values = where(Filter(session=wanted.session), self.visible)
        if excluding:
            condition += f" AND {item_shown('s.id')} AND {item_shown('s.original')}"
        sql = f"""
            SELECT DISTINCT origin.session_id FROM memory_file_states AS f
            JOIN memory_shared_items AS s ON s.id BETWEEN f.id << {ITEM_BITS} AND ((f.id + 1) << {ITEM_BITS}) - 1
            JOIN memory_file_states AS origin ON origin.id = s.original >> {ITEM_BITS}
            WHERE {condition} AND substr(origin.session_id, 1, length(?)) != ? ORDER BY 1
        """
        return [
            session_id
            for (session_id,) in self.rows(sql, (*values, wanted.session, wanted.session))
        ]

    def counts(self) -> Counts:
        condition, values = where(Filter(), self.visible)
        every = f"FROM {CONVERSATIONS} WHERE {condition}"
        by_status = dict(self.rows(f"SELECT c.status, count(*) {every} GROUP BY 1", values))
        [(text_bytes,)] = self.rows(f"SELECT sum(c.text_bytes) {every}", values)
        files = (
            "SELECT count(*), sum(f.status = 'gone'), sum(f.status = 'ingesting') FROM "
            "memory_file_states AS f"
        )
        [(all_files, gone, ingesting)] = self.rows(f"{files} WHERE {condition}", values)
        items = f"AS i JOIN memory_file_states AS f ON f.id = i.id >> {ITEM_BITS} WHERE {condition}"
        [(entries,)] = self.rows(f"SELECT count(*) FROM memory_transcript_entries {items}", values)
        [(tools,)] = self.rows(f"SELECT count(*) FROM memory_tool_uses {items}", values)
        size = sum(
            os.path.getsize(self.path + end)
            for end in ("", "-wal")
            if os.path.exists(self.path + end)
        )
        return Counts(
            all_files, gone or 0, ingesting or 0, entries, tools, by_status, text_bytes or 0, size
        )


def _ids_of(conversations: Iterable[Conversation]) -> list[int]:
    return [conversation.id for conversation in conversations]


def _forget_counts(connection: Connection, home: str, key: str) -> None:
    """Delete the counts of a file, within the caller's transaction."""
    from .counted_files import CountedFiles

    sql = "SELECT root FROM memory_file_states WHERE home = ? AND file_path = ?"
    for (root,) in fetch(connection, sql, (home, key)):
        CountedFiles.forget_file(connection, f"{root}/{key}")


def _drop_old_terms(connection: Connection) -> None:
    """Remove the terms of deleted texts from the search indexes, which keep them for a while."""
    for index in ("memory_search", "memories_search"):
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
