"""The times and directories of conversations, for the map of a year and for the choices of filters."""

from __future__ import annotations

from typing import NamedTuple

from ...system.sqlite import explained, fetch
from ..values import Filter
from .engine import SqliteStore
from .exclusions import HIDDEN_MESSAGES, LISTED, unless_private
from .rows import where


class WorkHour(NamedTuple):
    """An hour of a day (`2026-02-21`) in local time: how many conversations began in it, and how many messages these
    have."""

    day: str
    hour: int
    conversations: int
    messages: int


class WorkPlace(NamedTuple):
    """A directory in which sessions of a runtime were started: how many, and the end of the last in milliseconds since
    the epoch (None if unknown)."""

    directory: str
    runtime: str
    sessions: int
    last_at: int | None


def work_hours(store: SqliteStore, wanted: Filter) -> list[WorkHour]:
    """Return the hours in which conversations that fit began, the earliest first; those without a time are omitted.
    Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = where(wanted)
    messages = f"max(0, c.entry_count - {HIDDEN_MESSAGES})" if excluding else "c.entry_count"
    condition += f" AND {LISTED}" if excluding else ""
    sql = f"""
        SELECT strftime('%Y-%m-%d', at, 'unixepoch', 'localtime') AS day,
            CAST(strftime('%H', at, 'unixepoch', 'localtime') AS INTEGER) AS hour, sum(conversations), sum(messages)
        FROM (
            SELECT c.first_message_at / 900000 * 900 AS at, count(*) AS conversations, sum({messages}) AS messages
            FROM memory_conversations AS c JOIN memory_file_states AS f ON f.id = c.file_id
            WHERE {condition} AND c.first_message_at IS NOT NULL GROUP BY 1
        ) GROUP BY 1, 2 ORDER BY 1, 2
    """
    with explained(store.path):
        return [WorkHour._make(row) for row in fetch(store.connection, sql, values)]


def work_places(store: SqliteStore, homes: tuple[str, ...] | None = None) -> list[WorkPlace]:
    """Return the directories of these groups that have conversations, each with its runtimes, the latest first; ''
    stands for an unknown or private one. Raises DatabaseError."""
    excluding = store.is_excluding()
    condition, values = where(Filter(homes=homes))
    directory = unless_private("f.cwd") if excluding else "f.cwd"
    condition += f" AND {LISTED}" if excluding else ""
    sql = f"""
        SELECT directory, source, count(*), max(last_at) FROM (
            SELECT DISTINCT {directory} AS directory, f.source, f.id, f.last_entry_timestamp AS last_at
            FROM memory_file_states AS f JOIN memory_conversations AS c ON c.file_id = f.id WHERE {condition}
        ) GROUP BY 1, 2 ORDER BY 4 DESC, 1
    """
    with explained(store.path):
        return [WorkPlace._make(row) for row in fetch(store.connection, sql, values)]
