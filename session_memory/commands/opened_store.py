"""The store of whoever asks, opened for a command: brought up to date, and made anew where it is corrupt."""

from __future__ import annotations

import os
import sys
import time

from ..errors import SessionMemoryError
from ..store.ingest.unchanged import count_unchanged
from ..store.location import find_place
from ..store.sqlite.engine import SqliteStore
from ..store.sqlite.repair import is_empty, rebuilt_notice, recut, set_aside_if_corrupt
from ..system.screen import Screen
from ..system.sqlite import UPDATE, CorruptDatabaseError, DatabaseError, NewerDatabaseError, explained
from ..text.timestamps import now_milliseconds
from .options import HOME, JSON, add

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..store.place import StorePlace
    from .options import Arguments

REFRESH_SECONDS = 3.0
REFRESH_BATCH_BYTES = 4 * 1024 * 1024
NEWER = "a newer session-memory made this store: it can be searched, but nothing is added; update: python3 install.py"


class Desk:
    """What a command works with: the store, where it lies, and the screen. `is_rebuilt`: it had to be made anew."""

    def __init__(self, store: SqliteStore, place: StorePlace, screen: Screen, is_rebuilt: bool) -> None:
        self.store = store
        self.place = place
        self.screen = screen
        self.is_rebuilt = is_rebuilt


class _OutOfTimeError(Exception):
    """More is new than there was time for."""


def add_common(parser: argparse.ArgumentParser) -> None:
    """The arguments that all commands have that are done at a desk."""
    add(parser, (HOME, JSON))


def at_desk(arguments: Arguments | argparse.Namespace, work: Callable[[Desk], int]) -> int:
    """Opens the store and has `work` done with it; a store that turns out corrupt is set aside, and it is done again
    with a new one. Returns what `work` returns. Raises SessionMemoryError."""
    screen = Screen(os.environ, is_json=arguments.json)
    place = find_place(arguments.home, os.environ)
    aside = ""
    for is_certain in (False, True):
        try:
            return _work(place, screen, work, aside)
        except CorruptDatabaseError:
            aside = set_aside_if_corrupt(place.database, is_certain=is_certain)
    return _work(place, screen, work, aside)


def _work(place: StorePlace, screen: Screen, work: Callable[[Desk], int], aside: str) -> int:
    store = open_store(place)
    try:
        aside = aside or store.set_aside
        if aside:
            note(rebuilt_notice(aside, screen.short(aside)))
        desk = Desk(store, place, screen, bool(aside))
        if store.is_newer:
            note(NEWER)
            return _read(desk, work)
        if aside:
            refresh(desk)
        return work(desk)
    finally:
        store.close()


def _read(desk: Desk, work: Callable[[Desk], int]) -> int:
    """Has work done with a newer store, as far as an older program can: what it does not understand is no fault of the
    store, which must not be set aside for that. Raises NewerDatabaseError."""
    try:
        return work(desk)
    except (OSError, NewerDatabaseError):
        raise
    except Exception as error:
        if isinstance(error, SessionMemoryError) and not isinstance(error, DatabaseError):
            raise
        raise NewerDatabaseError(f"{desk.place.database}: this version cannot read it", UPDATE) from error


def open_store(place: StorePlace) -> SqliteStore:
    """The store, its conversations cut as the settings say. Raises DatabaseError."""
    settings = place.settings
    store = SqliteStore(place.database, gap=settings.gap, least_messages=settings.least_messages)
    try:
        if not store.is_newer:
            recut(store, settings.gap_minutes)
    except BaseException:
        store.close()
        raise
    return store


def note(text: str) -> None:
    """Says on stderr what somebody should know who may have piped the result elsewhere."""
    print(f"session-memory: {text}", file=sys.stderr, flush=True)


def refresh(desk: Desk) -> None:
    """Takes in what is new before a question is answered: all of it where nothing is known yet, else as much as a few
    seconds allow. Where that fails the question is answered from what is known, which is said."""
    if desk.store.is_newer:
        return
    with explained(desk.place.database):
        if count_unchanged(desk.store.connection, desk.place, now_milliseconds()):
            return
    from ..store.ingest.intake import take_in

    try:
        if is_empty(desk.store):
            from .progress import shown

            with shown(desk.screen, desk.store, desk.place.watched) as progress:
                take_in(desk.store, desk.place, progress, workers=os.cpu_count() or 1)
        else:
            take_in(desk.store, desk.place, _until(time.monotonic() + REFRESH_SECONDS), batch_bytes=REFRESH_BATCH_BYTES)
        desk.store.mark_ready(now_milliseconds())
    except _OutOfTimeError:
        note("much is new, and not all of it is known yet: session-memory ingest takes it in")
    except CorruptDatabaseError:
        raise
    except DatabaseError as error:
        note(f"what is new could not be taken in: {error}")


def _until(deadline: float) -> Callable[[str, int], None]:
    """A progress that ends it at a time of the monotonic clock."""

    def progress(path: str, size: int) -> None:
        if time.monotonic() > deadline:
            raise _OutOfTimeError

    return progress
