"""Upkeep's steps for memories: making them from ended conversations, and moving them by rules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..common.errors import SessionMemoryError, described
from ..common.system.leftover_files import remove_old_files
from ..common.system.sqlite import CorruptDatabaseError, Patience
from ..common.text.format import one_line
from ..common.text.sanitize import for_people
from ..history.store.refresh import PATIENCE_SECONDS
from ..sessions.settings.homes import private_beside
from .folders import folders_of
from .library import forget_for_good, open_index
from .runner import prepared

if TYPE_CHECKING:
    from ..app.upkeep.run import Run


def remove_leftovers(run: Run) -> None:
    """Delete pages that killed processes left half-written."""
    for folder in folders_of(run.location):
        for place in (folder, private_beside(folder)):
            remove_old_files(place)


def make(run: Run) -> None:
    """Make memories of the conversations that have ended. Raises SessionMemoryError, OSError."""
    if run.is_spent():
        return
    with prepared(run.location) as work:
        run.record.stopped = [f"{id}: {error}" for id, error in work.missing]
        for done in work.work_off(stop=run.is_spent):
            run.record.memories += len(done.memories)
            if done.status == "stopped":
                reason = one_line(for_people(done.reason))
                run.record.stopped.append(f"{done.strategy}: {reason}")


def follow_rules(run: Run) -> None:
    """Move memories that rules exclude to private folders, and others back.

    Raises CorruptDatabaseError."""
    location = run.location
    try:
        if any(map(os.path.isdir, folders_of(location))):
            with open_index(location, run.note, Patience(PATIENCE_SECONDS)):
                pass  # opening it has moved them
    except CorruptDatabaseError:
        raise
    except (SessionMemoryError, OSError) as error:
        run.note(f"some memories that rules exclude could not be moved: {described(error)}")


def forget(run: Run, ids: dict[str, list[str]]) -> None:
    """Forget memories for good: see `library.forget_for_good`."""
    forget_for_good(run.location, ids, run.note)
