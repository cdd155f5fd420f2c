"""Upkeep's steps for the store: opening it for other steps, and ingesting new content."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...common.system.sqlite import DatabaseError
from ...common.text.timestamps import now_milliseconds
from ...extension_points import UPKEEP_IN_STORE
from .ingest.intake import take_in
from .refresh import use_store
from .sqlite.engine import SqliteStore
from .sqlite.unread_lines import add_missing
from .sqlite.unread_words import forget_incomplete

if TYPE_CHECKING:
    from ...app.upkeep.run import Run

REDACTION_SECONDS = 5.0
WORDS_SECONDS = 10.0
BATCH_BYTES = 8 * 1024 * 1024


class _SpentError(Exception):
    """The allowance is spent before everything is ingested."""


def use(run: Run) -> None:
    """Open the store, and take the steps that need it; again with a new store if it is corrupt.

    Raises SessionMemoryError."""

    def take_steps(store: SqliteStore, is_rebuilt: bool) -> None:
        if store.obstacle:
            raise store.obstacle
        run.store = store
        run.take(UPKEEP_IN_STORE, fatal=(DatabaseError,))

    use_store(run.location, take_steps, run.note)


def ingest(run: Run) -> None:
    """Ingest new content within the allowance, and bring older content up to this version.

    Raises DatabaseError, OSError."""
    store, changed = run.store, set[str]()

    def progress(path: str, size: int) -> None:
        if size:
            changed.add(path)
        run.record.files, run.record.bytes = len(changed), run.record.bytes + size
        if run.is_spent():
            raise _SpentError

    forget_incomplete(store, run.location.watched, WORDS_SECONDS)
    with suppress(_SpentError):
        take_in(store, run.location, progress, batch_bytes=BATCH_BYTES)
    store.mark_ready(now_milliseconds())
    store.redact_again(REDACTION_SECONDS)
    add_missing(store, REDACTION_SECONDS)
