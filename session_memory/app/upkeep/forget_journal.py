"""Forgets sessions for good, step by step.

A journal beside the tombstones, `<database>.forgetting.json`, lists the remaining steps. If a step
fails or the process is killed, the next `forget`, `ingest` or upkeep finishes them. Features
register their steps in `extension_points.FORGETTING`. A step may run twice; its arguments are JSON.
"""

import os
from collections.abc import Iterable
from typing import Any

from ...common.errors import SessionMemoryError, described
from ...common.extensions import load
from ...common.system.files import Closing, lock, read_whole, write_atomically
from ...common.system.json import decode, encode
from ...common.system.sqlite import CorruptDatabaseError
from ...extension_points import FORGETTING as STEPS
from ...history.store.location import StoreLocation
from ...history.store.refresh import Note
from ...history.store.sqlite.engine import SqliteStore
from ...sessions.settings import forgotten
from ...sessions.settings.homes import FORGETTING
from .run import Run

Steps = dict[str, Any]

LOCK_SECONDS = 10.0


class JournalError(SessionMemoryError):
    """The journal cannot be read."""


def begin(location: StoreLocation, steps: Steps) -> None:
    """Write all steps, with their arguments, into the journal before any of them runs.

    Raises OSError, SessionMemoryError."""
    path = location.database + FORGETTING
    with Closing(lock(f"{path}.lock", LOCK_SECONDS)):
        _write(path, [*_read(path), {name: steps[name] for name in STEPS if name in steps}])


def finish(location: StoreLocation, store: SqliteStore, note: Note) -> list[str]:
    """Run the remaining steps, and return the problems of failed ones, which stay in the journal.

    Raises OSError, SessionMemoryError if the journal cannot be read or written."""
    if not forgotten.is_unfinished(location.database):
        return []
    run = Run(location, note)
    run.store = store
    path = location.database + FORGETTING
    with Closing(lock(f"{path}.lock", LOCK_SECONDS)):
        journal, problems = _read(path), []
        for steps in journal:
            for name in list(steps):
                if name == "free_pages" and not steps.keys().isdisjoint(
                    ("memories", "conversations")
                ):
                    break  # more is going to be deleted
                place, unfinished = STEPS[name]
                try:
                    load(place)(run, steps[name])
                except CorruptDatabaseError:
                    raise  # the store is rebuilt, and the caller called again
                except (SessionMemoryError, OSError) as error:
                    problems.append(f"{unfinished}: {described(error)}")
                    # without these files, the next ingest would bring back deleted content
                    if name in ("messages", "tombstones"):
                        break
                else:
                    del steps[name]
                    _write(path, journal)
        return problems


def finish_in_upkeep(run: Run) -> None:
    """Run the remaining steps, and log the problems. Raises OSError, SessionMemoryError."""
    for problem in finish(run.location, run.store, run.note):
        run.note(problem)


def _read(path: str) -> list[Steps]:
    try:
        journal = decode(read_whole(path).decode())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise JournalError(
            f"{path}: not JSON: {error}", "delete it, and forget the sessions again"
        ) from error
    if isinstance(journal, list) and all(
        isinstance(steps, dict) and steps.keys() <= STEPS.keys() for steps in journal
    ):
        return journal
    raise JournalError(f"{path}: written by a newer version", "update session-memory")


def _write(path: str, journal: Iterable[Steps]) -> None:
    left = [steps for steps in journal if steps]
    if left:
        write_atomically(path, encode(left).encode())
    else:
        os.unlink(path)
