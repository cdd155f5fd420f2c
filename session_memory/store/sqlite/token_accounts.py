"""The tokens that models have spent: an account for each attempt at a conversation, and the sum of a day's accounts.

An account counts from before the first token: first the estimate, then call by call what the provider reported. A crash
leaves nothing uncounted, and concurrent processes share one day.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..values import Usage
from .queue_database import QueueDatabase

if TYPE_CHECKING:
    from apsw import Connection

_SPENT = "input_tokens + output_tokens + cached_tokens + pending"
_COUNTED = f"iif(is_settled, {_SPENT}, max(reserved, {_SPENT}))"


class TokenAccounts:
    """The accounts of all processes that use the store. Methods raise DatabaseError."""

    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def of_day(self, now: int) -> int:
        """Return the tokens that count against the day (UTC) of `now`, in milliseconds since the epoch."""
        sql = f"SELECT coalesce(sum({_COUNTED}), 0) FROM memory_spending WHERE day = ?"
        [(total,)] = self._database.fetch(sql, (day_of(now),))
        return int(total)

    def by_model(self, since: str, until: str = "9") -> list[Usage]:
        """Return the tokens that each model has spent from one day to another (UTC, inclusive); reserved tokens count
        as input."""
        sql = (
            f"SELECT sum(input_tokens + max(0, {_COUNTED} - input_tokens - output_tokens - cached_tokens)), "
            "sum(output_tokens), sum(cached_tokens), model FROM memory_spending "
            "WHERE day BETWEEN ? AND ? GROUP BY model"
        )
        return [Usage(*row) for row in self._database.fetch(sql, (since, until))]

    def open(self, strategy: str, conversation_id: int, estimate: Usage, now: int, day_limit: int) -> int | None:
        """Open an account with `estimate` reserved. Return its id, or None if that exceeds what is left of the day."""
        with self._database.transaction() as connection:
            if estimate.tokens and self.of_day(now) + estimate.tokens > day_limit:
                return None
            connection.execute(
                "INSERT INTO memory_spending (at, day, strategy, conversation_id, model, reserved) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (now, day_of(now), strategy, conversation_id, estimate.model, estimate.tokens),
            )
            return connection.last_insert_rowid()

    def begin_call(self, account: int, estimate: Usage, day_limit: int, account_limit: int) -> tuple[int, int] | None:
        """Add a call that will spend at most `estimate`, and return None. If that does not fit, add nothing, and return
        the tokens left of the day and of the account."""
        with self._database.transaction() as connection:
            sql = f"SELECT {_SPENT}, reserved, day FROM memory_spending WHERE id = ?"
            spent, reserved, day = connection.execute(sql, (account,)).get
            others = connection.execute(
                f"SELECT coalesce(sum({_COUNTED}), 0) FROM memory_spending WHERE day = ? AND id != ?", (day, account)
            ).get
            wanted = spent + estimate.tokens
            if wanted > account_limit or wanted > max(reserved, day_limit - others):
                return day_limit - others - spent, account_limit - spent
            connection.execute(
                "UPDATE memory_spending SET pending = pending + ?, calls = calls + 1, model = ? WHERE id = ?",
                (estimate.tokens, estimate.model, account),
            )
            return None

    def end_call(self, account: int, estimate: Usage, usage: Usage) -> None:
        """Replace the estimate of a call with its real usage."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE memory_spending SET pending = pending - ?, input_tokens = input_tokens + ?, "
                "output_tokens = output_tokens + ?, cached_tokens = cached_tokens + ?, "
                "model = coalesce(nullif(?, ''), model) WHERE id = ?",
                (
                    estimate.tokens, usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.model, account,
                ),
            )  # fmt: skip

    def settle(self, account: int, usage: Usage) -> None:
        """Close an account. `usage` counts if no single calls were recorded. A call without a report stays counted as
        estimated."""
        with self._database.transaction() as connection:
            settle(connection, account, usage)


def settle(connection: Connection, account: int, usage: Usage) -> None:
    """See `TokenAccounts.settle`; within the caller's transaction. An account with nothing spent is deleted."""
    connection.execute(
        "UPDATE memory_spending SET is_settled = 1, input_tokens = iif(calls, input_tokens, ?1), "
        "output_tokens = iif(calls, output_tokens, ?2), cached_tokens = iif(calls, cached_tokens, ?3), "
        "model = iif(calls OR ?4 = '', model, ?4) WHERE id = ?5",
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.model, account),
    )
    connection.execute(f"DELETE FROM memory_spending WHERE id = ? AND {_SPENT} = 0", (account,))


def day_of(now: int) -> str:
    """Return the day (UTC) of a point in time in milliseconds since the epoch."""
    return time.strftime("%Y-%m-%d", time.gmtime(now / 1000))
