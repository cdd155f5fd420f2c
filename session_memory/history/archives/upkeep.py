"""Upkeep's steps for archives: due ones are written, and rules decide where they are."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError, described
from ...common.system.leftover_files import remove_old_files
from ...sessions.settings.homes import private_beside
from ...sessions.settings.host_layout import Layout, held
from ...sessions.settings.privacy import Privacy
from .due import archived_elsewhere, due_archives, history, write_due
from .list import KnownArchives, given_title, settle
from .writer import archive_group_session

if TYPE_CHECKING:
    from ...app.upkeep.run import Run

HISTORY_CPU_SECONDS = 30.0
HISTORY_SECONDS = 86_400.0
_UNFINISHED = re.compile(r"^\..+\.tmp$")  # as archives.writer names them, only among archives


def remove_leftovers(run: Run) -> None:
    """Delete archives that killed processes left half-written."""
    for archives in run.location.archives:
        for folder in (archives.directory, private_beside(archives.directory)):
            remove_old_files(folder, _UNFINISHED)


def write(run: Run) -> None:
    """Write the due archives, then those from before the install if the settings want them.

    Raises DatabaseError, OSError."""
    if run.is_spent():
        return
    store, location, runs = run.store, run.location, run.runs
    known = KnownArchives()
    due = due_archives(store, location, runs.archived_until or run.record.began, known)
    run.record.archived, problems = write_due(due, location, known, run.is_spent)
    if not run.is_spent():
        runs.archived_until = run.record.began
        # once all is archived, look again after a day
        is_due = run.record.began - runs.history_archived_at >= HISTORY_SECONDS
        if is_due and location.home.settings().archive_history:
            problems += _write_history(run, known)
    for problem in problems:
        run.note(problem)


def _write_history(run: Run, known: KnownArchives) -> list[str]:
    """Write archives of the history, for at most HISTORY_CPU_SECONDS; return the problems."""
    is_over = run.within(HISTORY_CPU_SECONDS)
    is_elsewhere = archived_elsewhere(run.location)
    due = history(run.store, run.location, is_elsewhere)
    written, problems = write_due(due, run.location, known, is_over)
    run.record.archived += written
    run.runs.history_archived_at = 0.0 if is_over() else run.record.began
    return problems


def follow_rules(run: Run) -> None:
    """Move archives that rules exclude to private folders, and others back."""
    location = run.location
    try:
        for archives in location.archives:
            if os.path.isdir(archives.directory) and not archives.home:
                settle(archives.directory, Privacy(location.environ, location.home))
            elif os.path.isdir(archives.directory):
                group = Layout(location.home.root).group(archives.home)
                with held(group) as place:
                    settle(place.conversations_dir, Privacy(location.environ, group.memory_home))
    except (SessionMemoryError, OSError) as error:
        run.note(f"some archives that rules exclude could not be moved: {described(error)}")


def forget(_: Run, paths: list[str]) -> None:
    """Delete archives. Raises OSError."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def write_again(run: Run, archives: list[list[str]]) -> None:
    """Rewrite archives of sessions that continued after a part was forgotten.

    Each has a path, session id, transcript and group. Then neither the text nor the file name
    contains a forgotten part. Raises SessionMemoryError, OSError."""
    gone, due, problems = [], [], []
    for path, session, transcript, group in archives:
        if not os.path.isfile(transcript):
            gone += [path] if os.path.lexists(path) else []
            continue
        title = given_title(path)
        forget(run, [path])
        if not group:
            due.append((session, transcript))
            continue
        try:
            archive_group_session(
                Layout(run.location.home.root).group(group), session, time.time(), title
            )
        except (SessionMemoryError, OSError) as error:
            problems.append(f"{transcript}: it could not be archived: {described(error)}")
    problems += write_due(iter(due), run.location, KnownArchives(), lambda: False)[1]
    if gone:
        problems.append(
            f"the transcripts of these archives are gone, so delete the archives by hand: "
            f"{', '.join(gone)}"
        )
    if problems:
        raise SessionMemoryError("; ".join(problems))
