"""Where archives lie and how one is written: streamed, whole or not at all, and never shorter than it was."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..system.files import lock, make_private_dir, open_regular, read_at
from . import format as archive_text
from .writer import Source, Style, Written, still_holds, write_appended, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_WAIT_SECONDS = 30.0


def write_archive(source: Source, directory: str, style: Style, now: float) -> str | None:
    """Writes or renews the archive of a session in `directory`; its path, or None if nothing was said yet.

    A session has one archive. What its transcript no longer holds, because it was truncated or replaced, stays in it.
    `now` is in seconds since the epoch. Raises OSError, and LockedError if another process is at it for long.
    """
    make_private_dir(directory)
    held = lock(f"{directory}/.lock", LOCK_WAIT_SECONDS)
    temporary = f"{directory}/.{source.session_id}.tmp"
    try:
        path, facts = find_archive(directory, source.session_id) or ("", {})
        written = write_whole(source, temporary, style, now)
        if written.messages and facts and not (written.holds(facts) or still_holds(source, facts)):
            written = write_appended(source, temporary, style, now, path, facts)
        if not written.messages:
            return path or None
        if not path:
            path = _free_path(directory, written)
        os.replace(temporary, path)
        return path
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.close(held)


def find_archive(directory: str, session_id: str) -> tuple[str, dict[str, Any]] | None:
    """The path and the facts of a session's archive."""
    return next(((path, facts) for path, facts in list_archives(directory) if facts["session"] == session_id), None)


def list_archives(directory: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path and the facts of every archive in `directory`, in no particular order."""
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if not name.endswith(".md") or name.startswith("."):
            continue
        try:
            descriptor = open_regular(f"{directory}/{name}")
        except OSError:
            continue
        try:
            size = os.fstat(descriptor).st_size
            end = read_at(descriptor, max(0, size - archive_text.TRAILER_BYTES), size)
        finally:
            os.close(descriptor)
        facts = archive_text.facts_in(end.decode("utf-8", "replace"))
        if facts is not None:
            yield f"{directory}/{name}", facts


def _free_path(directory: str, written: Written) -> str:
    """A path that no file has yet, for a new archive: date of the first message, local, and title."""
    date = time.strftime("%Y-%m-%d", time.localtime(written.first))
    stem = f"{directory}/{date}-{archive_text.slug(written.title) or written.session_id[:8]}"
    path, number = f"{stem}.md", 2
    while os.path.lexists(path):
        path, number = f"{stem}-{number}.md", number + 1
    return path
