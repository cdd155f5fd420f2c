"""The queue in the database: a row for each conversation and strategy.

A row has the progress of the strategy, and a mark while a process works on it. A strategy works in
one process at a time (memory/queue.py), so a mark that a new worker finds was left by a process
that has ended. Times are in milliseconds since the epoch.

A strategy gets the part of a conversation that it has not seen (seen_items.py), known by the ids of
the items. Times may be equal, missing or out of order. They decide only if a transcript was
ingested again and its ids changed.
"""

import os
from typing import Any, NamedTuple

from ....common.system.sqlite import Connection, fetch
from ..rules import StoreRules
from ..values import FOREIGN_ROOT, Conversation, Filter, StoredEntry, Usage, Visible
from ._seen_items import find_again, seen_elsewhere, seen_of, unseen
from .exclusions import WHOLE, Exclusions
from .queue_database import QueueDatabase, TokenAccounts, forget_item_ids, settle
from .rows import CONVERSATIONS, conversation_columns, conversation_of, items_between, where

_OF_CONVERSATION = (
    "w.home = f.home AND w.source_file = c.source_file AND w.first_message_at = "
    "coalesce(c.first_message_at, 0)"
)
_FROM = f"FROM {CONVERSATIONS} LEFT JOIN memory_work AS w ON {_OF_CONVERSATION} AND w.strategy = ?"
_OF_PART = "home = ? AND source_file = ? AND first_message_at = ? AND strategy = ?"
_TAKE = """
    INSERT INTO memory_work (home, source_file, first_message_at, strategy, conversation_id,
    first_item, owner, until_item, until_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT DO UPDATE SET owner = ?7, until_item = ?8, until_at = ?9,
    interruptions = interruptions + ?10
"""
# In accounts that a process left open, the reserved tokens count, unless calls were recorded.
_SETTLE = """
    UPDATE memory_spending SET is_settled = 1, input_tokens = iif(calls, input_tokens, reserved)
    WHERE NOT is_settled AND conversation_id = ? AND strategy = ?
"""
_BEGIN = "UPDATE memory_conversations SET status = 'processing' WHERE id = ? AND status = 'ready'"
_COLUMNS = (
    "c.first_item, c.last_item, w.until_item, w.until_at, w.result, w.attempts, w.interruptions, "
    + conversation_columns(excluding=False)
)
_SKIPPED = "w.outcome = 'skipped' AND w.owner IS NULL"
_AT_ONCE = 100
_DUE = "coalesce(w.next_try, 0) <= ?"
# A conversation without a row is open too. If a file was read again, only `find_again` tells which
# of its items were seen.
_OPEN = (
    "(c.status IN ({}) AND coalesce(w.seen_item, 0) < c.last_item AND coalesce(w.first_item, 1) OR "
    "c.first_item IN (SELECT first_item FROM memory_work WHERE strategy = ? AND "
    "result IS NOT NULL))"
)


class ConversationPart(NamedTuple):
    """The items of a conversation, from `first_item` to `until_item`, that a strategy has not seen.

    `result` is the strategy's result for them so far, or ''. The strategy failed `attempts` times,
    and its process ended `interruptions` times during the work. `is_again` means that the part
    includes items that were skipped before."""

    conversation: Conversation
    strategy: str
    first_item: int
    until_item: int
    result: str
    attempts: int
    interruptions: int
    is_again: bool = False


class Retry(NamedTuple):
    """A conversation that failed with a `problem`, and the time of the next attempt."""

    strategy: str
    conversation: Conversation
    at: int
    problem: str


class StoredQueue(QueueDatabase):
    """The queue, in which each strategy works in one process at a time.

    A conversation waits as long as `rules` exclude any part of it. Methods raise DatabaseError."""

    def __init__(self, path: str, rules: StoreRules | None = None, visible: Visible = None) -> None:
        super().__init__(path)
        self._visible = visible
        self._next_ids: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        self._exclusions = Exclusions(self.connection, rules)
        self.accounts = TokenAccounts(self)

    def waiting(
        self,
        strategy: str,
        now: int,
        statuses: tuple[str, ...] = (),
    ) -> list[ConversationPart]:
        """Return the parts that can be worked on now, the oldest first.

        In this order, a newer part can correct an older one. Conversations with one of `statuses`
        count as well as ready ones."""
        return [_part(strategy, row) for row in self._rows(strategy, now, statuses)]

    def count_waiting(self, strategy: str, now: int) -> int:
        """Return the number of parts that `waiting` returns."""
        condition, values = self._open(strategy, now, ())
        [(count,)] = self.rows(f"SELECT count(*) {_FROM} WHERE {condition}", values)
        return int(count)

    def retries(self, strategy: str, now: int) -> list[Retry]:
        """Return the conversations that wait for a retry, by the time of the retry."""
        condition, values = self._where()
        sql = (
            f"SELECT w.next_try, w.problem, {conversation_columns(excluding=False)} {_FROM} "
            f"WHERE {condition} "
            "AND c.status IN ('ready', 'processing') AND w.next_try > ? ORDER BY w.next_try, c.id"
        )
        rows = self.rows(sql, (strategy, *values, now))
        return [Retry(strategy, conversation_of(row), at, problem) for at, problem, *row in rows]

    def skipped(self, strategy: str) -> list[ConversationPart]:
        condition, values = self._where()
        sql = (
            f"SELECT {_COLUMNS} {_FROM} WHERE {condition} AND {_SKIPPED} ORDER BY "
            f"c.last_message_at, c.id"
        )
        rows = self.rows(sql, (strategy, *values))
        return [_part(strategy, row)._replace(is_again=True) for row in rows]

    def reopen(self, strategy: str) -> None:
        condition, values = self._where()
        with self.transaction() as connection:
            sql = (
                f"SELECT c.id, w.home, w.source_file, w.first_message_at {_FROM} WHERE "
                f"{condition} AND {_SKIPPED}"
            )
            for conversation_id, *key in fetch(connection, sql, (strategy, *values)):
                connection.execute(
                    f"UPDATE memory_work SET seen_item = 0, outcome = '', reason = "
                    f"'' WHERE {_OF_PART}",
                    (*key, strategy),
                )
                connection.execute(
                    "UPDATE memory_conversations SET status = 'ready', reason = '' WHERE id = ? "
                    "AND status = 'skipped'",
                    (conversation_id,),
                )

    def take(
        self,
        strategy: str,
        now: int,
        *,
        statuses: tuple[str, ...] = (),
    ) -> ConversationPart | None:
        """Take the oldest part; None if none waits.

        The oldest are looked up _AT_ONCE at a time, because each look passes all that wait."""
        with self.transaction() as connection:
            row = self._oldest(strategy, now, statuses)
            if row is None:
                return None
            part = _part(strategy, row)
            conversation = part.conversation
            sql = f"SELECT 1 FROM memory_work WHERE {_OF_PART} AND owner IS NOT NULL"
            was_interrupted = bool(fetch(connection, sql, _key(part)))
            values = (
                *_key(part),
                conversation.id,
                part.first_item,
                str(os.getpid()),
                part.until_item,
                conversation.last_message_at,
                was_interrupted,
            )
            connection.execute(_TAKE, values)
            connection.execute(_SETTLE, (conversation.id, strategy))
            connection.execute(_BEGIN, (conversation.id,))
            return part._replace(interruptions=part.interruptions + was_interrupted)

    def entries(self, part: ConversationPart) -> tuple[list[StoredEntry], bool]:
        """Return the entries of a part in file order.

        The second value is True if other entries of the conversation became memories."""
        connection = self.connection
        first, last = part.first_item, part.until_item
        with self.explained():
            seen = seen_of(
                connection,
                part.strategy,
                part.conversation,
                first,
                last,
                with_own=not part.is_again,
            )
            excluding = self._exclusions.ready()
            items = unseen(items_between(connection, first, last, excluding=excluding), seen)
            elsewhere = (
                seen_elsewhere(connection, part.strategy, part.conversation, first, last)
                if items
                else set()
            )
        return [item for item in items if item.id not in elsewhere], seen.is_archived

    def keep_result(self, part: ConversationPart, result: str, account: int, usage: Usage) -> None:
        with self.transaction() as connection:
            settle(connection, account, usage)
            _update(connection, part, "result = ?", (result,))

    def has_result(self, part: ConversationPart) -> bool:
        """Check if a result is recorded whose memories are not written yet."""
        return bool(
            self.rows(f"SELECT 1 FROM memory_work WHERE {_OF_PART} AND result != ''", _key(part))
        )

    def put_back(
        self, part: ConversationPart, *, attempts: int = 0, next_try: int = 0, problem: str = ""
    ) -> None:
        """Release an unfinished part, to be retried from `next_try` on; a recorded result stays."""
        columns = "owner = NULL, attempts = ?, next_try = ?, problem = ?, interruptions = 0"
        with self.transaction() as connection:
            _update(connection, part, columns, (attempts, next_try, problem))
            _release(connection, part.conversation.id)

    def finish(
        self, part: ConversationPart, outcome: str, reason: str, strategies: tuple[str, ...]
    ) -> None:
        """Record that a part is archived or skipped.

        Its conversation is finished too if all `strategies` are done with it and it has not grown.
        """
        columns = (
            "owner = NULL, result = NULL, attempts = 0, interruptions = 0, next_try "
            "= 0, problem = '', "
            "seen_item = until_item, seen_until = until_at, reason = ?, "
            # a result that is already in the memories stays archived
            "outcome = iif(outcome = 'archived', 'archived', ?)"
        )
        with self.transaction() as connection:
            _update(connection, part, columns, (reason, outcome))
        with self.transaction() as connection:  # not before it is recorded that the part is done
            _close(connection, part.conversation.id, strategies)

    def close_done(self, strategies: tuple[str, ...]) -> None:
        """Close the conversations that all `strategies` are done with but that are still open.

        They are open because an unfinished strategy was removed from the settings, or because the
        file was ingested again."""
        self._next_ids.clear()  # older ones may wait since
        marks = ", ".join("?" * len(strategies))
        sql = (
            f"SELECT c.id FROM {CONVERSATIONS} WHERE c.status IN ('ready', 'processing') AND "
            f"(SELECT count(*) "
            f"FROM memory_work AS w WHERE {_OF_CONVERSATION} AND w.seen_item >= c.last_item AND "
            f"w.strategy IN ({marks})"
            ") = ?"
        )
        with self.transaction() as connection:
            forget_item_ids(connection)
            find_again(connection)
            for (conversation_id,) in fetch(connection, sql, (*strategies, len(strategies))):
                _close(connection, conversation_id, strategies)

    def _where(self) -> tuple[str, list[Any]]:
        """Return the condition on conversations that may be taken."""
        condition, values = where(Filter(), self._visible)
        condition = f"{condition} AND f.root NOT LIKE '%{FOREIGN_ROOT}'"
        with self.explained():
            return (f"{condition} AND {WHOLE}" if self._exclusions.ready() else condition), values

    def _oldest(self, strategy: str, now: int, statuses: tuple[str, ...]) -> tuple[Any, ...] | None:
        """Return _COLUMNS of the oldest waiting row, or None.

        A conversation that comes to wait meanwhile follows those that were looked up."""
        condition, values = self._open(strategy, now, statuses)
        sql = (
            f"SELECT c.id {_FROM} WHERE {condition} ORDER BY c.last_message_at, c.id "
            f"LIMIT {_AT_ONCE}"
        )
        ids = self._next_ids.setdefault((strategy, statuses), [])
        while True:
            is_new = not ids
            if is_new:
                ids += [id for (id,) in self.rows(sql, values)]
            while ids:
                rows = self._rows(strategy, now, statuses, ids.pop(0))
                if rows:
                    return rows[0]
            if is_new:
                return None

    def _rows(
        self, strategy: str, now: int, statuses: tuple[str, ...], id: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Return _COLUMNS of all waiting rows, or of one conversation's if it waits."""
        condition, values = self._open(strategy, now, statuses)
        if id is not None:
            condition, values = f"{condition} AND c.id = ?", (*values, id)
        sql = f"SELECT {_COLUMNS} {_FROM} WHERE {condition} ORDER BY c.last_message_at, c.id"
        return self.rows(sql, values)

    def _open(
        self, strategy: str, now: int, statuses: tuple[str, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on rows of _FROM that wait, and the values of both."""
        condition, values = self._where()
        all_statuses = ("ready", "processing", *statuses)
        is_open = _OPEN.format(", ".join("?" * len(all_statuses)))
        bound = (strategy, *values, *all_statuses, strategy, now)
        return f"{condition} AND {is_open} AND {_DUE}", bound


def _update(
    connection: Connection, part: ConversationPart, columns: str, values: tuple[Any, ...]
) -> None:
    connection.execute(f"UPDATE memory_work SET {columns} WHERE {_OF_PART}", (*values, *_key(part)))


def _key(part: ConversationPart) -> tuple[str, str, int, str]:
    conversation = part.conversation
    return (
        conversation.home,
        conversation.source_file,
        conversation.first_message_at or 0,
        part.strategy,
    )


def _part(strategy: str, row: tuple[Any, ...]) -> ConversationPart:
    first_item, last_item, until_item, until_at, result, attempts, interruptions = row[:7]
    conversation = conversation_of(row[7:])
    if result:  # it is recorded for the items that it was made of
        last_item, conversation = until_item, conversation._replace(last_message_at=until_at)
    return ConversationPart(
        conversation,
        strategy,
        first_item,
        last_item,
        result or "",
        attempts or 0,
        interruptions or 0,
    )


def _release(connection: Connection, conversation_id: int) -> None:
    connection.execute(
        "UPDATE memory_conversations SET status = 'ready' WHERE id = ?1 AND status = "
        "'processing' AND NOT EXISTS ("
        f"SELECT 1 FROM {CONVERSATIONS} JOIN memory_work AS w ON {_OF_CONVERSATION} "
        "WHERE c.id = ?1 AND w.owner IS NOT NULL)",
        (conversation_id,),
    )


def _close(connection: Connection, conversation_id: int, strategies: tuple[str, ...]) -> None:
    """Set the status of a conversation that all `strategies` are done with.

    It is archived if any strategy made memories of it."""
    rows = fetch(
        connection,
        "SELECT w.strategy, w.outcome, w.reason, w.seen_item >= c.last_item AND w.owner IS NULL "
        f"FROM {CONVERSATIONS} JOIN memory_work AS w ON {_OF_CONVERSATION} WHERE c.id = ?",
        (conversation_id,),
    )
    done = {
        strategy: str(reason)
        for strategy, _, reason, is_done in rows
        if is_done and strategy in strategies
    }
    if len(done) < len(strategies):
        _release(connection, conversation_id)
        return
    is_archived = any(outcome == "archived" for _, outcome, _, _ in rows)
    reason = "" if is_archived else "; ".join(dict.fromkeys(done.values()))
    connection.execute(
        "UPDATE memory_conversations SET status = ?, reason = ? WHERE id = ?",
        ("archived" if is_archived else "skipped", reason, conversation_id),
    )
