"""The caller's store, opened for a command with arguments and a terminal."""

from __future__ import annotations

import os
import sys
from functools import partial

from ..runtimes.detection import is_started_by_agent
from ..store import refresh as store_refresh
from ..store.location import find_location
from ..store.sqlite.exclusions import VisibilityOverrides
from ..system.sqlite import Patience
from ..system.terminal import Terminal
from .arguments import OnlyForPeopleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..store.ingest.ingestion import Progress
    from ..store.location import StoreLocation
    from ..store.postgres.engine import TeamStore
    from ..store.refresh import Note
    from ..store.sqlite.engine import SqliteStore


class OpenStore:
    """The context of a command: the store, its location, and the terminal. `is_rebuilt`: the store was just rebuilt.
    `note` prints a notice once. `patience` is that of a question, None for a command that writes. `team` is the store
    if it is the team's, which is read like one's own."""

    def __init__(
        self, store: SqliteStore, location: StoreLocation, terminal: Terminal, is_rebuilt: bool, note: Note,
        patience: Patience | None, *, team: TeamStore | None = None,
    ) -> None:  # fmt: skip
        self.store = store
        self.location = location
        self.terminal = terminal
        self.is_rebuilt = is_rebuilt
        self.note = note
        self.patience = patience
        self.team = team

    @property
    def is_team(self) -> bool:
        """Check if the store is the team's."""
        return self.team is not None


def with_store(arguments: argparse.Namespace, work: Callable[[OpenStore], int], *, writes: bool = False) -> int:
    """Return what `work` returns with the open store; repeat it if the store turns out to be corrupt and is rebuilt.
    Unless the command `writes`, it is a question, answered soon from what is there. Raises SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    with_private = getattr(arguments, "include_private", False)
    if with_private and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private")
    location = find_location(arguments.home, os.environ)
    if getattr(arguments, "team", False):
        return _with_team(location, terminal, work)
    patience = None if writes else Patience(store_refresh.PATIENCE_SECONDS)
    said: set[str] = set()

    def note_once(text: str) -> None:
        about = text.partition(":")[0]  # report only once that something failed to ingest, whatever the reason
        if about not in said:
            said.add(about)
            note(terminal.short(text))

    return store_refresh.use_store(
        location,
        lambda store, is_rebuilt: work(OpenStore(store, location, terminal, is_rebuilt, note_once, patience)),
        note_once,
        partial(_shown, terminal, location),
        workers=os.cpu_count() or 1,
        patience=patience,
        overrides=VisibilityOverrides(location.own_sessions, with_private),
    )


def _with_team(location: StoreLocation, terminal: Terminal, work: Callable[[OpenStore], int]) -> int:
    """Return the same with the store of the team that the home has joined."""
    from contextlib import closing
    from typing import cast

    from ..store.postgres.connection import PATIENCE_SECONDS
    from ..store.postgres.engine import TeamStore
    from ..upkeep.team import joined_team

    with closing(TeamStore(joined_team(location.home).url, seconds=PATIENCE_SECONDS)) as store:
        return work(OpenStore(cast("SqliteStore", store), location, terminal, False, note, None, team=store))


def refresh(opened: OpenStore) -> None:
    """Ingest what is new before a question is answered: see store.refresh. A team's store has what was pushed to it."""
    if opened.is_team:
        return
    shown = partial(_shown, opened.terminal, opened.location)
    store_refresh.refresh(opened.store, opened.location, opened.note, shown, workers=os.cpu_count() or 1)


def note(text: str) -> None:
    """Print a notice on stderr, since the result may be piped elsewhere."""
    print(f"session-memory: {text}", file=sys.stderr, flush=True)


def _shown(terminal: Terminal, location: StoreLocation, store: SqliteStore) -> AbstractContextManager[Progress]:
    from .progress import shown  # only for the first import

    return shown(terminal, store, location.watched)
