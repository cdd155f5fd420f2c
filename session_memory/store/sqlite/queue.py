"""The queue in the database: a row for each conversation and strategy, with a lease while somebody works on it and how
far it is done. Times are in milliseconds since the epoch.

What is worked on is the part of a conversation that the strategy has not seen (seen_items.py). Ids of items say which
that is: times may be alike, missing or out of order, and decide only where a transcript was read anew and ids changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...system.sqlite import DatabaseError, fetch
from ..values import Conversation, Filter, StoredEntry
from .exclusions import WHOLE, Exclusions
from .queue_copy import ACCOUNTS, WORK, note, shorten
from .rows import conversation_columns, conversation_of, items_between, where
from .schema import open_database
from .seen_items import find_again, seen_elsewhere, seen_of, unseen
from .token_accounts import TokenAccounts, settle

if TYPE_CHECKING:
    from apsw import Connection

    from ..rules import StoreRules
    from ..values import Usage

_FROM = (
    "FROM memory_conversations AS c JOIN memory_file_states AS f ON f.id = c.file_id "
    "LEFT JOIN memory_work AS w ON w.conversation_id = c.id AND w.strategy = ?"
)
_COLUMNS = (
    "c.first_item, c.last_item, w.until_item, w.until_at, w.result, w.attempts, w.interruptions, "
    + conversation_columns(excluding=False)
)
_SKIPPED = "w.outcome = 'skipped' AND w.owner IS NULL"
_FREE = "(w.owner IS NULL OR w.lease_until <= ?) AND coalesce(w.next_try, 0) <= ?"
_OPEN = (
    "(c.status IN ({}) AND coalesce(w.seen_item, 0) < c.last_item OR "
    "c.id IN (SELECT conversation_id FROM memory_work WHERE strategy = ? AND result IS NOT NULL))"
)


class ConversationPart(NamedTuple):
    """What a strategy has not seen of the items of a conversation, which are those from `first_item` to `until_item`.
    `result` is what was made of it already ('' for nothing).

    `attempts` have failed before, `interruptions` is how often the process ended while it was at work. `is_again` tells
    that what was skipped of it before is part of it.
    """

    conversation: Conversation
    strategy: str
    first_item: int
    until_item: int
    result: str
    attempts: int
    interruptions: int
    is_again: bool = False


class StoredQueue:
    """Safe to use from several processes at once, from one thread each. A conversation of which `rules` exclude
    anything waits, for as long as they do. Methods raise DatabaseError."""

    def __init__(self, path: str, rules: StoreRules | None = None) -> None:
        self._database = open_database(path)
        self._exclusions = Exclusions(self._database.connection, rules)
        self.accounts = TokenAccounts(self._database)
        self._has_kept = False

    def close(self) -> None:
        """Closes the database; of results that were recorded nothing stays in the copy."""
        try:
            if self._has_kept:
                with self._database.transaction() as connection:
                    shorten(connection)
        except DatabaseError:
            pass  # the next run does it
        finally:
            self._database.close()

    def waiting(
        self, strategy: str, now: int, homes: tuple[str, ...] | None = None, statuses: tuple[str, ...] = ()
    ) -> list[ConversationPart]:
        """The parts that could be taken now, the oldest first, so that what is newer may correct what is older.

        `statuses` are those of conversations that count beside ready ones.
        """
        return [_part(strategy, row) for row in self._rows(strategy, now, homes, statuses)]

    def skipped(self, strategy: str, homes: tuple[str, ...] | None = None) -> list[ConversationPart]:
        """The parts that were skipped, the oldest first."""
        condition, values = self._where(homes)
        sql = f"SELECT {_COLUMNS} {_FROM} WHERE {condition} AND {_SKIPPED} ORDER BY c.last_message_at, c.id"
        rows = fetch(self._database.connection, sql, (strategy, *values))
        return [_part(strategy, row)._replace(is_again=True) for row in rows]

    def reopen(self, strategy: str, homes: tuple[str, ...] | None = None) -> None:
        """Lets what was skipped be taken up again."""
        condition, values = self._where(homes)
        with self._database.transaction() as connection:
            sql = f"SELECT c.id {_FROM} WHERE {condition} AND {_SKIPPED}"
            for (conversation_id,) in fetch(connection, sql, (strategy, *values)):
                connection.execute(
                    "UPDATE memory_work SET seen_item = 0, outcome = '', reason = '' "
                    "WHERE conversation_id = ? AND strategy = ?",
                    (conversation_id, strategy),
                )
                note(connection, WORK, conversation_id, strategy)
                connection.execute(
                    "UPDATE memory_conversations SET status = 'ready', reason = '' WHERE id = ? AND status = 'skipped'",
                    (conversation_id,),
                )

    def busy_until(self, strategy: str, owner: str, now: int) -> int:
        """Until when another owner holds a part of this strategy; 0 if none does."""
        sql = "SELECT max(lease_until) FROM memory_work WHERE strategy = ? AND owner != ? AND lease_until > ?"
        return self._database.connection.execute(sql, (strategy, owner, now)).get or 0

    def take(
        self,
        strategy: str,
        owner: str,
        now: int,
        *,
        lease: int,
        longest: int,
        homes: tuple[str, ...] | None = None,
        statuses: tuple[str, ...] = (),
    ) -> ConversationPart | None:
        """Takes the oldest part for `lease`, which may be renewed until `longest` has passed; None if there is none,
        or if another owner is at work for this strategy: it is to see one conversation after the other."""
        with self._database.transaction() as connection:
            if self.busy_until(strategy, owner, now):
                return None
            row = next(iter(self._rows(strategy, now, homes, statuses, limit=1)), None)
            if row is None:
                return None
            part = _part(strategy, row)
            conversation = part.conversation
            is_interrupted = _was_interrupted(connection, part)
            connection.execute(
                "INSERT INTO memory_work (conversation_id, strategy, home, source_file, first_message_at, first_item, "
                "owner, lease_until, longest_until, until_item, until_at) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) "
                "ON CONFLICT DO UPDATE SET owner = ?7, lease_until = ?8, longest_until = ?9, until_item = ?10, "
                "until_at = ?11, interruptions = interruptions + ?12",
                (
                    conversation.id, strategy, conversation.home, conversation.source_file,
                    conversation.first_message_at, part.first_item, owner, now + lease, now + longest,
                    part.until_item, conversation.last_message_at, is_interrupted,
                ),
            )  # fmt: skip
            note(connection, WORK, conversation.id, strategy)
            _close_accounts(connection, part)
            sql = "UPDATE memory_conversations SET status = 'processing' WHERE id = ? AND status = 'ready'"
            connection.execute(sql, (conversation.id,))
            return part._replace(interruptions=part.interruptions + is_interrupted)

    def renew(self, owner: str, now: int, lease: int) -> None:
        """Renews what `owner` has taken."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE memory_work SET lease_until = min(?, longest_until) WHERE owner = ?", (now + lease, owner)
            )

    def entries(self, part: ConversationPart) -> tuple[list[StoredEntry], bool]:
        """The entries of a part in file order, and whether something was made before of others of its conversation."""
        connection = self._database.connection
        first, last = part.first_item, part.until_item
        seen = seen_of(connection, part.strategy, part.conversation, first, last, with_own=not part.is_again)
        excluding = self._exclusions.ready()
        items = unseen(list(items_between(connection, first, last, excluding=excluding)), seen)
        elsewhere = seen_elsewhere(connection, part.strategy, part.conversation, first, last) if items else set()
        return [item for item in items if item.id not in elsewhere], seen.is_archived

    def keep_result(self, part: ConversationPart, owner: str, result: str, account: int, usage: Usage) -> bool:
        """Records what was made of a part, and with it what its account spent; False, and only the account is closed,
        if somebody else has taken the part over."""
        self._has_kept = True
        with self._database.transaction() as connection:
            settle(connection, account, usage)
            sql = "UPDATE memory_work SET result = ? WHERE conversation_id = ? AND strategy = ? AND owner = ?"
            connection.execute(sql, (result, part.conversation.id, part.strategy, owner))
            is_ours = connection.changes() > 0
            note(connection, WORK, part.conversation.id, part.strategy)
            return is_ours

    def has_result(self, part: ConversationPart) -> bool:
        """Whether a result is recorded that has not been kept yet."""
        sql = "SELECT result IS NOT NULL FROM memory_work WHERE conversation_id = ? AND strategy = ?"
        return bool(self._database.connection.execute(sql, (part.conversation.id, part.strategy)).get)

    def put_back(
        self,
        part: ConversationPart,
        owner: str,
        *,
        attempts: int = 0,
        next_try: int = 0,
        problem: str = "",
        interruptions: int = 0,
    ) -> bool:
        """Gives a part back undone, to be taken again from `next_try` on; a result that was recorded stays."""
        columns = "owner = NULL, lease_until = 0, attempts = ?, next_try = ?, problem = ?, interruptions = ?"
        values = (attempts, next_try, problem, interruptions)
        with self._database.transaction() as connection:
            if not _update(connection, part, owner, columns, values):
                return False
            _release(connection, part.conversation.id)
            return True

    def finish(
        self, part: ConversationPart, owner: str, outcome: str, reason: str, strategies: tuple[str, ...]
    ) -> bool:
        """Records that a part is archived or skipped, and that of the conversation if all `strategies` are done with
        it and it has not grown. False, and nothing is recorded, if somebody else has taken it over."""
        columns = (
            "owner = NULL, lease_until = 0, result = NULL, attempts = 0, interruptions = 0, next_try = 0, "
            "problem = '', seen_item = until_item, seen_until = until_at, reason = ?, "
            "outcome = iif(outcome = 'archived', 'archived', ?)"  # what is in the memories already stays archived
        )

        with self._database.transaction() as connection:
            if not _update(connection, part, owner, columns, (reason, outcome)):
                return False
            _close(connection, part.conversation.id, strategies)
            return True

    def close_done(self, strategies: tuple[str, ...]) -> None:
        """Closes conversations that all `strategies` are done with although they are not marked so: another one, which
        has not been at work, is no longer among them, or the file was read anew."""
        marks = ", ".join("?" * len(strategies))
        sql = (
            "SELECT c.id FROM memory_conversations AS c WHERE c.status IN ('ready', 'processing') AND ("
            "SELECT count(*) FROM memory_work AS w WHERE w.conversation_id = c.id AND w.seen_item >= c.last_item "
            f"AND w.strategy IN ({marks})) = ?"
        )
        with self._database.transaction() as connection:
            shorten(connection)
            find_again(connection)
            rows: list[Any] = connection.execute(sql, (*strategies, len(strategies))).fetchall()
            for (conversation_id,) in rows:
                _close(connection, conversation_id, strategies)

    def _where(self, homes: tuple[str, ...] | None) -> tuple[str, tuple[Any, ...]]:
        """The condition on conversations that may be handed out."""
        condition, values = where(Filter(homes=homes))
        return (f"{condition} AND {WHOLE}" if self._exclusions.ready() else condition), values

    def _rows(
        self, strategy: str, now: int, homes: tuple[str, ...] | None, statuses: tuple[str, ...], limit: int = -1
    ) -> list[tuple[Any, ...]]:
        """The latest state of what waits; only `limit` of it is looked at closely."""
        condition, values = self._where(homes)
        all_statuses = ("ready", "processing", *statuses)
        is_open = _OPEN.format(", ".join("?" * len(all_statuses)))
        sql = (
            f"SELECT {_COLUMNS} {_FROM} WHERE c.id IN ("
            f"SELECT c.id {_FROM} WHERE {condition} AND {is_open} AND {_FREE} ORDER BY c.last_message_at, c.id LIMIT ?"
            ") ORDER BY c.last_message_at, c.id"
        )
        bound = (strategy, strategy, *values, *all_statuses, strategy, now, now, limit)
        return list(self._database.connection.execute(sql, bound))


def _update(connection: Connection, part: ConversationPart, owner: str, columns: str, values: tuple[Any, ...]) -> bool:
    """Changes the row of a part that `owner` holds; False if that is somebody else by now."""
    sql = f"UPDATE memory_work SET {columns} WHERE conversation_id = ? AND strategy = ? AND owner = ?"
    connection.execute(sql, (*values, part.conversation.id, part.strategy, owner))
    is_ours = connection.changes() > 0
    note(connection, WORK, part.conversation.id, part.strategy)
    return is_ours


def _part(strategy: str, row: tuple[Any, ...]) -> ConversationPart:
    first_item, last_item, until_item, until_at, result, attempts, interruptions = row[:7]
    conversation = conversation_of(row[7:])
    if result:  # what it was made of is what it will be recorded for
        last_item, conversation = until_item, conversation._replace(last_message_at=until_at)
    return ConversationPart(
        conversation, strategy, first_item, last_item, result or "", attempts or 0, interruptions or 0
    )


def _was_interrupted(connection: Connection, part: ConversationPart) -> bool:
    """Whether somebody took the part and neither finished it nor gave it back."""
    sql = "SELECT owner IS NOT NULL FROM memory_work WHERE conversation_id = ? AND strategy = ?"
    return bool(connection.execute(sql, (part.conversation.id, part.strategy)).get)


def _close_accounts(connection: Connection, part: ConversationPart) -> None:
    """Ends the accounts that a process left open: what was reserved counts, unless single calls were recorded."""
    left_open = fetch(
        connection,
        "SELECT id FROM memory_spending WHERE NOT is_settled AND conversation_id = ? AND strategy = ?",
        (part.conversation.id, part.strategy),
    )
    for (account,) in left_open:
        connection.execute(
            "UPDATE memory_spending SET is_settled = 1, input_tokens = iif(calls, input_tokens, reserved) WHERE id = ?",
            (account,),
        )
        note(connection, ACCOUNTS, account)


def _release(connection: Connection, conversation_id: int) -> None:
    """A conversation that nobody works on is ready again."""
    connection.execute(
        "UPDATE memory_conversations SET status = 'ready' WHERE id = ?1 AND status = 'processing' "
        "AND NOT EXISTS (SELECT 1 FROM memory_work WHERE conversation_id = ?1 AND owner IS NOT NULL)",
        (conversation_id,),
    )


def _close(connection: Connection, conversation_id: int, strategies: tuple[str, ...]) -> None:
    """The status of a conversation once all `strategies` are done with it: archived if any made something of it."""
    rows = connection.execute(
        "SELECT w.strategy, w.outcome, w.reason, w.seen_item >= c.last_item AND w.owner IS NULL FROM memory_work AS w "
        "JOIN memory_conversations AS c ON c.id = w.conversation_id WHERE c.id = ?",
        (conversation_id,),
    ).fetchall()
    done = {strategy: str(reason) for strategy, _, reason, is_done in rows if is_done and strategy in strategies}
    if len(done) < len(strategies):
        _release(connection, conversation_id)
        return
    is_archived = any(outcome == "archived" for _, outcome, _, _ in rows)
    reason = "" if is_archived else "; ".join(dict.fromkeys(done.values()))
    connection.execute(
        "UPDATE memory_conversations SET status = ?, reason = ? WHERE id = ?",
        ("archived" if is_archived else "skipped", reason, conversation_id),
    )
