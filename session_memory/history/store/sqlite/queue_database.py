"""A connection to the store with its queue attached, so one statement reads both.

A commit to both reaches the store first. It is atomic only for each of the two.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

from ....common.system import sqlite
from ....common.system.sqlite import Connection
from ..values import ITEM_BITS, Conversation, Usage
from ._schema import fault_of_file
from .corruption import StoreDatabase
from .queue_file import (
    MIGRATIONS,
    UnreadableQueueError,
    create_queue,
    open_queue,
    path_of,
    unreadable,
)


class QueueDatabase(StoreDatabase):
    """A connection to the store at `path` with its queue attached.

    It creates both if they are missing. Methods raise DatabaseError, or UnreadableQueueError if the
    queue is damaged."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            self.obstacle = _attach_queue(self.connection, path) or self.obstacle
            sql = (
                "SELECT q.id, s.id FROM memory_queue_store AS q, memory_store AS s "
                "WHERE q.id != s.id"
            )
            # a store that was rebuilt, whose items have other ids
            if not self.obstacle and self.rows(sql):
                with self.transaction() as connection:
                    forget_item_ids(connection, of_all=True)
                    connection.execute(
                        "UPDATE memory_queue_store SET id = (SELECT id FROM memory_store)"
                    )
        except BaseException:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Write to both databases in one transaction, rolled back if the block raises."""
        with self.explained(), super().transaction() as connection:
            yield connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise DatabaseError for any failure of SQLite or of a stored value within the block."""
        import apsw

        try:
            with sqlite.explained(self.path):
                yield
        except (sqlite.CorruptDatabaseError, apsw.Error, TypeError, ValueError) as error:
            if fault := damage(self.path):
                raise fault from error
            raise


def forget_item_ids(connection: Connection, *, of_all: bool = False) -> None:
    """Remove the ids of items from rows of files no longer in the store, or from all rows."""
    sql = """
        UPDATE memory_work SET first_item = 0, seen_item = 0
        WHERE first_item AND (?1 OR NOT EXISTS (
            SELECT 1 FROM memory_file_states AS f
            WHERE f.id = first_item >> ?2 AND f.home = memory_work.home AND f.file_path = memory_work.source_file
        ))
    """
    connection.execute(sql, (of_all, ITEM_BITS))


def forget_conversations(database: str, conversations: Iterable[Conversation]) -> None:
    """Delete the work for these conversations from the queue."""
    with closing(QueueDatabase(database)) as queue, queue.transaction() as connection:
        for conversation in conversations:
            key = (
                conversation.home,
                conversation.source_file,
                conversation.first_message_at or 0,
                conversation.id,
            )
            connection.execute(
                "DELETE FROM memory_work WHERE home = ?1 AND source_file = ?2 AND "
                "(first_message_at = ?3 "
                "OR EXISTS (SELECT 1 FROM memory_conversations AS c WHERE c.id = ?4 "
                "AND memory_work.first_item BETWEEN c.first_item AND c.last_item))",
                key,
            )


READER_MILLISECONDS = 2000  # to wait for a reader to end


def drop_free_pages(database: str) -> None:
    """Rewrite the store and its queue without free pages, and empty their logs."""
    with closing(QueueDatabase(database)) as queue, queue.explained():
        queue.connection.set_busy_timeout(READER_MILLISECONDS)
        queue.connection.execute("PRAGMA temp_store = file")
        for schema in ("main", "queue"):
            queue.connection.execute(f"VACUUM {schema}")
            [(is_busy, *_)] = queue.connection.execute(f"PRAGMA {schema}.wal_checkpoint(truncate)")
            if is_busy:
                raise sqlite.LockedDatabaseError(
                    f"{database}: another program is still reading the deleted rows", "close it"
                )


def _attach_queue(connection: Connection, database: str) -> sqlite.DatabaseError | None:
    """Attach the queue, created if missing.

    If it is read-only, attach a copy in memory and return the reason."""
    path = path_of(database)
    obstacle: sqlite.DatabaseError | None
    try:
        queue = open_queue(database)
    except UnreadableQueueError:
        raise
    except sqlite.DatabaseError as error:
        if os.path.lexists(path):
            raise
        import apsw

        obstacle = error
        with closing(apsw.Connection(":memory:")) as empty:
            create_queue(empty)
            content = empty.serialize("main")
    else:
        with closing(queue):
            obstacle = queue.obstacle
            content = queue.connection.serialize("main") if obstacle else b""
    with sqlite.explained(path):
        if obstacle:
            connection.execute("ATTACH ':memory:' AS queue")
            connection.deserialize("queue", content)
        else:
            sqlite.attach(connection, path, "queue")
    return obstacle


def damage(database: str) -> UnreadableQueueError | None:
    """Return the error in the queue of the store at `database`; None if it is sound or absent."""
    import apsw

    path = path_of(database)
    try:
        if os.path.lexists(path):
            with sqlite.explained(path), closing(sqlite.open_file(path)) as connection:
                fault = fault_of_file(connection, path, MIGRATIONS)
                return unreadable(path, fault) if fault else None
    except sqlite.CorruptDatabaseError as error:
        return unreadable(path, str(error))
    except (sqlite.DatabaseError, apsw.Error):
        pass  # it cannot be opened now
    return None


_SPENT = "input_tokens + output_tokens + cached_tokens + pending"
_COUNTED = f"iif(is_settled, {_SPENT}, max(reserved, {_SPENT}))"


class TokenAccounts:
    """The accounts of all processes that use the store. Methods raise DatabaseError."""

    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def of_day(self, now: int) -> int:
        """Return the tokens that count for the day (UTC) of `now`.

        `now` is in milliseconds since the epoch."""
        sql = f"SELECT coalesce(sum({_COUNTED}), 0) FROM memory_spending WHERE day = ?"
        [(total,)] = self._database.rows(sql, (day_of(now),))
        return int(total)

    def by_model(self, since: str, until: str = "9") -> list[Usage]:
        """Return the tokens of each model between two days (UTC); reserved ones count as input."""
        sql = (
            f"SELECT sum(input_tokens + max(0, {_COUNTED} - input_tokens - output_tokens - "
            f"cached_tokens)), "
            "sum(output_tokens), sum(cached_tokens), model FROM memory_spending "
            "WHERE day BETWEEN ? AND ? GROUP BY model"
        )
        return [Usage(*row) for row in self._database.rows(sql, (since, until))]

    def open(
        self, strategy: str, conversation_id: int, estimate: Usage, now: int, day_limit: int
    ) -> int | None:
        """Reserve `estimate` in a new account, and return its id; None above the day's limit."""
        with self._database.transaction() as connection:
            if estimate.tokens and self.of_day(now) + estimate.tokens > day_limit:
                return None
            connection.execute(
                "INSERT INTO memory_spending (at, day, strategy, conversation_id, model, reserved) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (now, day_of(now), strategy, conversation_id, estimate.model, estimate.tokens),
            )
            return connection.last_insert_rowid()

    def begin_call(
        self, account: int, estimate: Usage, day_limit: int, account_limit: int
    ) -> tuple[int, int] | None:
        """Add a call that will spend at most `estimate`, and return None.

        If that exceeds a limit, add nothing, and return the tokens left of the day and of the
        account."""
        with self._database.transaction() as connection:
            sql = f"SELECT {_SPENT}, reserved, day FROM memory_spending WHERE id = ?"
            spent, reserved, day = connection.execute(sql, (account,)).get
            others = connection.execute(
                f"SELECT coalesce(sum({_COUNTED}), 0) FROM memory_spending WHERE "
                f"day = ? AND id != ?",
                (day, account),
            ).get
            wanted = spent + estimate.tokens
            if wanted > account_limit or wanted > max(reserved, day_limit - others):
                return day_limit - others - spent, account_limit - spent
            connection.execute(
                "UPDATE memory_spending SET pending = pending + ?, calls = calls + 1, model = ? "
                "WHERE id = ?",
                (estimate.tokens, estimate.model, account),
            )
            return None

    def end_call(self, account: int, estimate: Usage, usage: Usage) -> None:
        """Replace the estimate of a call with its real usage."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE memory_spending SET pending = pending - ?, input_tokens = "
                "input_tokens + ?, "
                "output_tokens = output_tokens + ?, cached_tokens = cached_tokens + ?, "
                "model = coalesce(nullif(?, ''), model) WHERE id = ?",
                (
                    estimate.tokens,
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.cached_tokens,
                    usage.model,
                    account,
                ),
            )

    def settle(self, account: int, usage: Usage) -> None:
        """Close an account.

        `usage` counts if no call was recorded. Calls without reported usage count as estimated."""
        with self._database.transaction() as connection:
            settle(connection, account, usage)


def settle(connection: Connection, account: int, usage: Usage) -> None:
    """Settle an account within the caller's transaction, see `TokenAccounts.settle`.

    An account without any spending is deleted."""
    connection.execute(
        "UPDATE memory_spending SET is_settled = 1, input_tokens = iif(calls, input_tokens, ?1), "
        "output_tokens = iif(calls, output_tokens, ?2), cached_tokens = iif(calls, "
        "cached_tokens, ?3), "
        "model = iif(calls OR ?4 = '', model, ?4) WHERE id = ?5",
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.model, account),
    )
    connection.execute(f"DELETE FROM memory_spending WHERE id = ? AND {_SPENT} = 0", (account,))


def day_of(now: int) -> str:
    """Return the day (UTC) of a time in milliseconds since the epoch."""
    return time.strftime("%Y-%m-%d", time.gmtime(now / 1000))
