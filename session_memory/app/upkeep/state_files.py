"""Upkeep's steps for the state that prompts and calls keep for each session.

The state of a session (its cursors and the files beside them) and the index of a project are
deleted after 90 days without a change. If the session continues after all, it gets a new session's
first update; an index is made again.
"""

import os
import re
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from typing import TYPE_CHECKING

from ...awareness.activity.call_log import SUFFIX, forget_calls
from ...awareness.activity.session_state import KnownState, StateFile
from ...awareness.activity.status_line import forget_line
from ...common.errors import LockedError
from ...common.system.files import names_in
from ...common.system.git_directories import remove_leftovers as remove_git_directories
from ...common.system.leftover_files import remove_old_files
from ...history.store.location import StoreLocation
from ...sessions.settings.host_layout import Layout, held_home
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts import mirror

if TYPE_CHECKING:
    from .run import Run

CURSOR_SECONDS = 90 * 86_400.0
_STATE = re.compile(r"(?<!\.lock)$")
_LOCK = re.compile(r"\.lock$")
_FORMER = re.compile(r"^told-(faults|homes)\.json$")  # 0.4 kept its notices in two files


def remove_leftovers(run: "Run") -> None:
    """Delete obsolete state files, and temporary directories of git."""
    home = run.location.home
    remove_git_directories()
    remove_old_files(home.state_dir)
    remove_old_files(home.state_dir, _FORMER, CURSOR_SECONDS)
    kept = (home.cursor_file("x"), home.project_index("/"), home.folder_list("/"))
    for file in (*kept, home.ref_notes("/")):
        for names in (_STATE, _LOCK):
            remove_old_files(os.path.dirname(file), names, CURSOR_SECONDS)


def drop_excluded_titles(run: "Run") -> None:
    """Delete the titles of excluded sessions from other sessions' state.

    State that is in use waits for the next run."""
    location = run.location
    for home_name in ("", *filter(None, location.home_names)):
        privacy = Privacy(run.location.environ, location.home, location.home_for(home_name))
        for path in _state_files(location, home_name):
            with suppress(OSError, LockedError):
                excluded = {
                    key
                    for key, start, title in KnownState(path).titles()
                    if privacy.rule(start, key, key.rpartition(":")[2], title).ignore
                }
                if excluded:
                    with StateFile(path) as file:
                        file.forget_titles(excluded)


def forget_mirrors(_: "Run", paths: list[str]) -> None:
    """Delete our copies of sessions that a runtime keeps in another form.

    They are made again without the forgotten sessions."""
    for path in paths:
        mirror.remove(path)


def forget_state(run: "Run", by_home: dict[str, list[str]]) -> None:
    """Delete the state of sessions with these ids and names, and their titles elsewhere.

    Ids and names are given by home. Lists of transcripts have ids too, and are made again."""
    lists = os.path.dirname(run.location.home.folder_list("/"))
    for name in names_in(lists):
        with suppress(FileNotFoundError):
            os.unlink(f"{lists}/{name}")
    for names, path in _state_of(run.location, by_home):
        with closing(StateFile(path)) as file:
            file.forget(names)
        forget_calls(path, names)
        forget_line(path)


def forget_titles(run: "Run", by_home: dict[str, list[str]]) -> None:
    """Delete the titles of sessions with these ids and names, by home, from others' state."""
    for names, path in _state_of(run.location, by_home):
        with closing(StateFile(path)) as file:
            file.forget_titles(names)
        forget_calls(path, names)


def _state_of(
    location: StoreLocation, by_home: dict[str, list[str]]
) -> Iterator[tuple[set[str], str]]:
    """Yield the names of each group with each file of state there."""
    for home_name, names in by_home.items():
        for path in _state_files(location, home_name):
            yield set(names), path


def _state_files(location: StoreLocation, home_name: str) -> Iterator[str]:
    """Yield the state files of a group's sessions, and delete unreadable ones.

    This includes files that do not exist yet for sessions whose calls are already noted."""
    home = location.home
    held = held_home(Layout(home.root).group(home_name)) if home_name else nullcontext(home)
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
