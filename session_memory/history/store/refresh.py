"""Opens a store and brings it up to date.

It rebuilds a corrupt store, applies the gap in the settings, and ingests new content of
transcripts, or of archives if the transcripts are gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple, TypeVar

from ...common.errors import SessionMemoryError, described
from ...common.system.sqlite import (
    UPDATE,
    CorruptDatabaseError,
    DatabaseError,
    NewerDatabaseError,
    Patience,
    explained,
)
from ...common.text.format import counted
from ...common.text.timestamps import now_milliseconds
from .location import StoreLocation
from .sqlite._conversations import rebuild_conversations
from .sqlite._schema import complete
from .sqlite.corruption import REBUILT, damage_recognised, quarantine_if_corrupt, quarantine_notice
from .sqlite.engine import SqliteStore
from .sqlite.exclusions import VisibilityOverrides
from .sqlite.queue_file import has_queue
from .sqlite.unchanged import count_unchanged
from .values import Progress

Result = TypeVar("Result")


ProgressShown = Callable[[SqliteStore], AbstractContextManager[Progress]]

Note = Callable[[str], None]

REFRESH_SECONDS = 3.0
SUB_AGENT_SECONDS = 2.0
# how long a question waits for other processes, such that a second is left for the answer
PATIENCE_SECONDS = 2.0
REFRESH_BATCH_BYTES = 4 * 1024 * 1024
TRY_AGAIN = "nothing was changed; try again, and report it if this continues"
NEWER = (
    "a newer session-memory made this store, so it can be searched but nothing is added; to "
    "update: python3 install.py"
)


class _OutOfTimeError(Exception):
    """There is more new content than there was time for."""


def open_store(
    location: StoreLocation,
    note: Note | None = None,
    patience: Patience | None = None,
    overrides: VisibilityOverrides | None = None,
) -> SqliteStore:
    """Return the store, with conversations cut as the settings say.

    With `patience` (for a question), the conversations stay as they were if they cannot be cut now.
    The store hides what rules exclude, except as `overrides` permit. `note` is called with repairs.
    Raises DatabaseError."""
    settings = location.settings
    store = SqliteStore(
        location.database,
        gap=settings.gap,
        least_messages=settings.min_conversation_messages,
        patience=patience,
        rules=location.rules,
        overrides=overrides,
        visible=location.visible,
    )
    try:
        if not store.obstacle:
            made = complete(store.connection, store.path)
            if made and note:
                note(f"the store lacked {', '.join(made)}, which were rebuilt")
            rebuild_conversations(store, settings.conversation_gap_minutes)
            store.apply_rules()
    except DatabaseError as error:
        if patience is None or isinstance(error, CorruptDatabaseError):
            store.close()
            raise
    except BaseException:
        store.close()
        raise
    return store


class _Options(NamedTuple):
    """The options of `use_store`, which its attempts pass on."""

    note: Note
    shown: ProgressShown | None
    workers: int
    patience: Patience | None
    overrides: VisibilityOverrides | None


def use_store(
    location: StoreLocation,
    work: Callable[[SqliteStore, bool], Result],
    note: Note,
    shown: ProgressShown | None = None,
    *,
    workers: int = 0,
    patience: Patience | None = None,
    overrides: VisibilityOverrides | None = None,
) -> Result:
    """Return the result of `work`, called with the open store and whether it was rebuilt.

    If the store proves corrupt, it is moved away, and the work is repeated with a new one.
    `patience` limits the wait for other processes; after that, a question is answered from the
    current content. `note` is called with notices for the user. Raises SessionMemoryError."""
    options = _Options(note, shown, workers, patience, overrides)
    moved = ""
    for _ in range(2):
        try:
            return _use_once(location, work, options, moved)
        except CorruptDatabaseError:
            moved = quarantine_if_corrupt(location.database) or moved
    try:
        return _use_once(location, work, options, moved)
    except CorruptDatabaseError as error:
        raise DatabaseError(
            f"{error}; but a check of the whole file found no damage", TRY_AGAIN
        ) from error


def _use_once(
    location: StoreLocation,
    work: Callable[[SqliteStore, bool], Result],
    options: _Options,
    moved: str,
) -> Result:
    """Do the work with the store; `moved` is the path of a corrupt one that it replaces, or ''."""
    note = options.note
    store = open_store(location, note, options.patience, options.overrides)
    try:
        moved = moved or store.quarantined
        if moved:
            note(quarantine_notice(moved))
        elif store.is_new and has_queue(location.database):
            note(f"the store was empty: it is {REBUILT}")
        if store.is_newer:
            note(NEWER)
        if store.obstacle:
            return _only_read(store, store.obstacle, lambda: work(store, bool(moved)))
        if moved:
            shown, workers = options.shown, options.workers
            refresh(store, location, note, shown, workers=workers, is_rebuilt=True)
        with damage_recognised(store):
            return work(store, bool(moved))
    finally:
        store.close()


def _only_read(store: SqliteStore, obstacle: DatabaseError, work: Callable[[], Result]) -> Result:
    """Do as much of the work as is possible with a read-only store. Raises DatabaseError."""
    try:
        return work()
    except Exception as error:
        is_ours = isinstance(error, SessionMemoryError) and not isinstance(error, DatabaseError)
        if is_ours or error is obstacle or isinstance(error, OSError):
            raise
        if store.is_newer:
            raise NewerDatabaseError(
                f"{store.path}: this version cannot read it", UPDATE
            ) from error
        raise obstacle from error


def refresh(
    store: SqliteStore,
    location: StoreLocation,
    note: Note,
    shown: ProgressShown | None = None,
    *,
    workers: int = 0,
    is_rebuilt: bool = False,
) -> str:
    """Ingest new content before a question is answered.

    Ingest everything if the store is empty or `is_rebuilt`, with its progress `shown` and with
    `workers` (see Ingestion). Otherwise ingest as much as REFRESH_SECONDS allow. If that fails,
    call `note` with the reason; the question is answered from the store. Return a notice of how
    much is missing, or ''. Raises CorruptDatabaseError."""
    if store.is_newer:
        return ""
    with explained(location.database):
        if not is_rebuilt and count_unchanged(store.connection, location, now_milliseconds()):
            return ""
    if store.obstacle:
        note(not_taken_in(store.obstacle))
        return ""
    try:
        if is_rebuilt or store.is_empty():
            _take_in_all(store, location, shown, workers)
        elif not _take_in_some(store, location):
            return _reach(store, location, note)
        store.mark_ready(now_milliseconds())
    except CorruptDatabaseError:
        raise
    except DatabaseError as error:
        note(not_taken_in(error))
    return ""


def read_sub_agents(store: SqliteStore) -> None:
    """Read sub-agents' output that the store lacks, for at most SUB_AGENT_SECONDS.

    The next call continues."""
    from .sqlite.unread_lines import add_missing  # imported late: a search does without it

    if not (store.is_newer or store.obstacle):
        with suppress(DatabaseError, OSError):
            add_missing(store, SUB_AGENT_SECONDS)


def _take_in_all(
    store: SqliteStore, location: StoreLocation, shown: ProgressShown | None, workers: int
) -> None:
    from .ingest.intake import take_in  # imported late: usually nothing is new

    if shown:
        with shown(store) as show:
            take_in(store, location, show, workers=workers)
    else:
        take_in(store, location, workers=workers)


def _take_in_some(store: SqliteStore, location: StoreLocation) -> bool:
    """Ingest for REFRESH_SECONDS; return whether that was enough."""
    from .ingest.intake import take_in

    deadline = time.monotonic() + REFRESH_SECONDS

    def progress(path: str, size: int) -> None:
        if time.monotonic() > deadline:
            raise _OutOfTimeError

    try:
        take_in(store, location, progress, batch_bytes=REFRESH_BATCH_BYTES)
    except _OutOfTimeError:
        return False
    return True


def _reach(store: SqliteStore, location: StoreLocation, note: Note) -> str:
    """Note and return how much is not ingested yet."""
    from .ingest.intake import pending

    new = pending(store, location.watched)
    sessions = counted(new.all_files, "session")
    reach = f"{new.files:,} of {sessions} are not complete in the store yet; session-memory ingest completes them"
    note(reach)
    return reach


def not_taken_in(error: Exception) -> str:
    """Return the notice that a question is answered from old content, because ingesting failed."""
    return f"new transcripts could not be ingested: {described(error)}"
