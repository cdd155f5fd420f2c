"""Upkeep's deletion of obsolete files: temporary files of killed processes after an hour; the state
of a session's prompts (cursors and the files beside them) and the index of a project after 90 days
without a change. If that session continues after all, its next update is that of a new session; an
index is made again."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress

from ...awareness.activity.call_log import SUFFIX
from ...awareness.activity.session_state import KnownState, StateFile
from ...common.errors import LockedError, SessionMemoryError, described
from ...common.system.files import Closing, is_regular, names_in, try_lock
from ...common.system.git_directories import remove_leftovers as remove_git_directories
from ...common.system.sqlite import CorruptDatabaseError, Patience
from ...history.archives.list import settle
from ...history.store.location import StoreLocation
from ...history.store.refresh import PATIENCE_SECONDS, Note
from ...memory.folders import folder_of, groups_of
from ...memory.library import open_index
from ...sessions.settings.homes import private_beside
from ...sessions.settings.host_layout import Layout, held_home
from ...sessions.settings.privacy import Privacy

UNFINISHED_SECONDS = 3600.0
CURSOR_SECONDS = 90 * 86_400.0
# as files.write_atomically names them: with the process id
_NAME = re.compile(r".\.\d+(-\d+)?\.tmp$")
_ARCHIVE = re.compile(r"^\..+\.tmp$")  # as archives.writer names them, only among archives
_STATE = re.compile(r"(?<!\.lock)$")
_LOCK = re.compile(r"\.lock$")


def remove_leftovers(location: StoreLocation) -> None:
    """Delete a store's obsolete files. Follows no symlink: an agent controls its group's files."""
    remove_git_directories()
    now = time.time()
    for directory, names, seconds in _leftovers(location):
        with suppress(OSError):  # the file is gone, or not ours
            for files, descriptor in _files_below(directory, names):
                for name in files:
                    _remove(name, descriptor, now - seconds)


def _leftovers(location: StoreLocation) -> Iterator[tuple[str, re.Pattern[str], float]]:
    """Yield directories, the names of the files below that are obsolete, and their least age."""
    yield location.home.state_dir, _NAME, UNFINISHED_SECONDS
    for file in (location.home.cursor_file("x"), location.home.project_index("/")):
        yield from ((os.path.dirname(file), names, CURSOR_SECONDS) for names in (_STATE, _LOCK))
    memories = [(folder_of(location, group), _NAME) for group in groups_of(location)]
    for folder, names in (*memories, *[(one.directory, _ARCHIVE) for one in location.archives]):
        yield from ((one, names, UNFINISHED_SECONDS) for one in (folder, private_beside(folder)))


def _files_below(
    directory: str, names: re.Pattern[str]
) -> Iterator[tuple[Iterator[str], int | None]]:
    """Yield, for each directory below this one, its files with such names and its descriptor (None
    on Windows)."""
    if hasattr(os, "fwalk"):
        for _, _, files, descriptor in os.fwalk(directory):
            yield filter(names.search, files), descriptor
    else:
        for folder, _, files in os.walk(directory):
            yield (f"{folder}/{name}" for name in filter(names.search, files)), None


def _remove(name: str, directory: int | None, until: float) -> None:
    with suppress(OSError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if is_regular(status) and status.st_mtime < until:
            if _LOCK.search(name):
                _remove_lock(name, directory)
            else:
                os.unlink(name, dir_fd=directory)


def _remove_lock(name: str, directory: int | None) -> None:
    """Delete a lock file that nobody holds, if what it locks is gone; files.lock notices. Raises
    OSError."""
    with suppress(FileNotFoundError):
        os.stat(name.removesuffix(".lock"), dir_fd=directory, follow_symlinks=False)
        return
    with Closing(
        os.open(name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), dir_fd=directory)
    ) as descriptor:
        if try_lock(descriptor):
            os.unlink(name, dir_fd=directory)


def state_files(location: StoreLocation, group: str) -> Iterator[str]:
    """Yield the files of state of a group's sessions, also those not yet made where calls are noted
    already; delete those that could not be read."""
    home = location.home
    held = held_home(Layout(home.root).group(group)) if group else nullcontext(home)
    # there is none for a group without transcripts
    with suppress(FileNotFoundError), held as place:
        folder = os.path.dirname(place.cursor_file("x"))
        paths = [f"{folder}/{name}" for name in names_in(folder)]
        for path in paths:
            state = path.removesuffix(SUFFIX) + ".json"
            if path.endswith(".json"):
                yield path
            elif path.endswith(SUFFIX) and state not in paths:
                yield state
            elif ".json.corrupt" in path:
                os.unlink(path)


def drop_excluded_titles(location: StoreLocation, environ: Mapping[str, str]) -> None:
    """Delete the titles of excluded sessions from the state of all others. State in use waits for
    the next run."""
    for group in ("", *filter(None, groups_of(location))):
        privacy = Privacy(environ, location.home, location.home_for(group))
        for path in state_files(location, group):
            with suppress(OSError, LockedError):
                excluded = {
                    key
                    for key, start, title in KnownState(path).titles()
                    if privacy.rule(start, key, key.rpartition(":")[2], title).ignore
                }
                if excluded:
                    with StateFile(path) as file:
                        file.forget_titles(excluded)


def follow_rules(location: StoreLocation, environ: Mapping[str, str], note: Note) -> None:
    """Move files that rules exclude to private folders, and others back. A host does this for its
    groups' archives. Calls `note` with any obstacle. Raises CorruptDatabaseError."""
    try:
        for archives in location.archives:
            if not archives.confined_to and os.path.isdir(archives.directory):
                settle(archives.directory, Privacy(environ, location.home))
        if any(os.path.isdir(folder_of(location, group)) for group in groups_of(location)):
            with open_index(location, note, Patience(PATIENCE_SECONDS)):
                pass  # which has moved them
    except CorruptDatabaseError:
        raise
    except (SessionMemoryError, OSError) as error:
        note(f"what rules exclude could not all be moved: {described(error)}")
