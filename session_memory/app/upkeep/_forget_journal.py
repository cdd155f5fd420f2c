"""Forgets sessions for good, step by step.

A journal beside the tombstones, `<database>.forgetting.json`, lists the steps that are left: if one
fails or the process is killed, the next `forget`, `ingest` or upkeep finishes them."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

from ...awareness.activity.call_log import forget_calls
from ...awareness.activity.session_state import StateFile
from ...awareness.activity.status_line import forget_line
from ...common.errors import SessionMemoryError, described
from ...common.system.files import Closing, lock, read_whole, write_atomically
from ...common.system.json import decode, encode
from ...common.system.sqlite import CorruptDatabaseError
from ...history.archives.due import write_due
from ...history.archives.list import given_title
from ...history.archives.writer import archive_group_session
from ...history.copies.keep import forget_kept
from ...history.copies.pack import pack_path
from ...history.forgotten_marks import marks_in
from ...history.store.location import StoreLocation
from ...history.store.refresh import Note
from ...history.store.sqlite import queue_file
from ...history.store.sqlite.corruption import delete_set_aside, set_aside
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import Conversation
from ...memory import forgotten as forgotten_memories
from ...memory.folders import folder_of, strategies_directory
from ...memory.library import library_of, open_index
from ...sessions.settings import forgotten
from ...sessions.settings.homes import FORGETTING
from ...sessions.settings.host_layout import Layout
from ...sessions.transcripts import mirror
from ._leftover_files import state_files

Steps = dict[str, Any]

LOCK_SECONDS = 10.0


class JournalError(SessionMemoryError):
    """The journal cannot be read."""


class StepError(SessionMemoryError):
    """A step could not be done."""


def begin(location: StoreLocation, steps: Steps) -> None:
    """Write steps (see `Forgetting`) into the journal, before any is done. Raises OSError,
    SessionMemoryError."""
    path = location.database + FORGETTING
    with Closing(lock(f"{path}.lock", LOCK_SECONDS)):
        _write(path, [*_read(path), steps])


def finish(
    location: StoreLocation, store: SqliteStore, environ: Mapping[str, str], note: Note
) -> list[str]:
    """Do the steps that are left, and return the problem of each that failed and stays in the
    journal. Raises OSError, SessionMemoryError if the journal cannot be read or written."""
    if not forgotten.is_unfinished(location.database):
        return []
    path = location.database + FORGETTING
    with Closing(lock(f"{path}.lock", LOCK_SECONDS)):
        journal, problems = _read(path), []
        forgetting = Forgetting(location, store, environ, note)
        for steps in journal:
            for name in list(steps):
                if name == "free_pages" and not steps.keys().isdisjoint(
                    ("memories", "conversations")
                ):
                    break  # more is going to be deleted
                try:
                    getattr(forgetting, name)(steps[name])
                except CorruptDatabaseError:
                    raise  # the store is rebuilt, and the caller called again
                except (SessionMemoryError, OSError) as error:
                    problems.append(f"{UNFINISHED[name]}: {described(error)}")
                    # without them, the next ingest brings back what is deleted
                    if name in ("messages", "tombstones"):
                        break
                else:
                    del steps[name]
                    _write(path, journal)
        return problems


UNFINISHED = {
    "messages": "nothing is forgotten yet",
    "tombstones": "nothing is forgotten yet",
    "memories": "memories keep it",
    "archives": "archives keep it",
    "rewritten": "archives of sessions that went on keep it",
    "conversations": "the store keeps it",
    "kept": "kept transcripts keep it",
    "copies": "copies of the runtime's sessions keep it",
    "cursors": "cursors keep titles of it until the next prompt",
    "titles": "cursors keep titles made of it until the next prompt",
    "graph": "the knowledge graph keeps its facts",
    "team": "the team keeps what was shared of it until the next push",
    "set_aside": "damaged files that were set aside may keep it",
    "free_pages": "free pages of the store keep it",
}


class Forgetting:
    """The steps, in the order of UNFINISHED. Each may be done again, and takes JSON."""

    def __init__(
        self, location: StoreLocation, store: SqliteStore, environ: Mapping[str, str], note: Note
    ) -> None:
        self._location = location
        self._store = store
        self._environ = environ
        self._note = note

    def messages(self, given: dict[str, list[list[Any]]]) -> None:
        """Note the messages of `conversations`, each as (id, group, session id), and of
        `transcripts`, each as (path, group, until when). Copies and forks are known by them."""
        marks = set(self._store.marks(self._stored(given["conversations"])))
        for path, group, until in given["transcripts"]:
            marks.update(marks_in(path, group, until))
        forgotten.add_messages(self._location.database, marks)

    def tombstones(self, given: list[list[Any]]) -> None:
        """Add tombstones, so that nothing comes back."""
        forgotten.add(
            self._location.database, [(home, id, path, at) for home, id, path, at in given]
        )

    def memories(self, by_group: dict[str, list[str]]) -> None:
        """Forget the memories of these ids, by group, and all that a person could still take
        back."""
        with open_index(self._location, self._note) as index:
            for group, ids in by_group.items():
                if ids:
                    library_of(self._location, index, group).forget(ids)
                forgotten_memories.write_undo(folder_of(self._location, group), ())

    def archives(self, paths: list[str]) -> None:
        """Delete archives."""
        for path in paths:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def rewritten(self, archives: list[list[str]]) -> None:
        """Write archives of sessions that went on once more, each as (path, session id, transcript,
        group): neither text nor file name keeps what is forgotten."""
        gone, due, problems = [], [], []
        for path, session, transcript, group in archives:
            if not os.path.isfile(transcript):
                gone += [path] if os.path.lexists(path) else []
                continue
            title = given_title(path)
            self.archives([path])
            if not group:
                due.append((session, transcript))
                continue
            try:
                archive_group_session(
                    Layout(self._location.home.root).group(group), session, time.time(), title
                )
            except (SessionMemoryError, OSError) as error:
                problems.append(f"{transcript}: it could not be archived: {described(error)}")
        problems += write_due(iter(due), self._location, self._environ, lambda: False)[1]
        if gone:
            problems.append(
                f"the transcripts of these are gone, so delete them by hand: {', '.join(gone)}"
            )
        if problems:
            raise StepError("; ".join(problems))

    def conversations(self, chosen: list[list[Any]]) -> None:
        """Delete conversations, each as (id, group, session id), from the store, and the copies
        that forks have."""
        stored = self._stored(chosen)
        self._store.forget_copies(stored)
        self._store.forget_conversations(stored)

    def _stored(self, chosen: list[list[Any]]) -> list[Conversation]:
        """Return the conversations, each given as (id, group, session id), that the store still
        has."""
        wanted = {tuple(one) for one in chosen}
        every = self._store.all_conversations(None, [id for id, *_ in chosen])
        return [one for one in every if (one.id, one.home, one.session_id) in wanted]

    def kept(self, sessions: list[list[str]]) -> None:
        """Delete the kept transcripts of sessions, each as (group, id)."""
        forget_kept(self._location, sessions)

    def copies(self, paths: list[str]) -> None:
        """Delete our copies of sessions that a runtime keeps in another form: they are made again
        without it."""
        for path in paths:
            mirror.remove(path)

    def cursors(self, by_group: dict[str, list[str]]) -> None:
        """Delete the state of sessions with these ids and names, by group, and their titles from
        that of others."""
        for names, path in self._state_files(by_group):
            with closing(StateFile(path)) as file:
                file.forget(names)
            forget_calls(path, names)
            forget_line(path)

    def titles(self, by_group: dict[str, list[str]]) -> None:
        """Delete the titles of sessions with these ids and names, by group, from the state of
        others."""
        for names, path in self._state_files(by_group):
            with closing(StateFile(path)) as file:
                file.forget_titles(names)
            forget_calls(path, names)

    def _state_files(self, by_group: dict[str, list[str]]) -> Iterator[tuple[set[str], str]]:
        """Yield the names of each group with each file of state there."""
        for group, names in by_group.items():
            for path in state_files(self._location, group):
                yield set(names), path

    def graph(self, until: list[list[Any]]) -> None:
        """Delete sessions, each as (group, id, until when), from the knowledge graph, if there is
        one."""
        settings = self._location.home.settings().memories.get("graphiti", {})
        embedded = f"{strategies_directory(self._location)}/graphiti"
        if not settings.get("url") and not os.path.isdir(embedded):
            return
        from ...extras.graph.graphs import forget_in_graph

        try:
            for group in {one[0] for one in until}:
                forget_in_graph(
                    self._location,
                    group,
                    {session: at for home, session, at in until if home == group},
                )
        except SessionMemoryError as error:
            if settings.get("url"):
                raise
            raise StepError(f"{error}; rm -r {embedded} deletes the whole graph") from error

    def team(self, given: dict[str, Any]) -> None:
        """Delete `sessions`, each as (group, id), and `memories`, by group, from the team that the
        home has joined."""
        if self._location.home.settings().team.get("url"):
            from ...extras.team.sharing import withdraw_forgotten

            sessions = {(group, id) for group, id in given["sessions"]}
            withdraw_forgotten(self._location, sessions, given["memories"])

    def set_aside(self, _: object) -> None:
        """Delete the corrupt stores that were set aside, and name what else was."""
        left = delete_set_aside(self._store)
        for path in (
            queue_file.path_of(self._location.database),
            pack_path(self._location.database),
        ):
            left += set_aside(path)
        if left:
            raise StepError(f"delete them by hand: {', '.join(left)}")

    def free_pages(self, _: object) -> None:
        """Rewrite the database without what was deleted."""
        self._store.drop_free_pages()


def _read(path: str) -> list[Steps]:
    try:
        found = decode(read_whole(path).decode())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise JournalError(
            f"{path}: not JSON: {error}", "delete it, and forget the sessions again"
        ) from error
    if isinstance(found, list) and all(
        isinstance(one, dict) and one.keys() <= UNFINISHED.keys() for one in found
    ):
        return found
    raise JournalError(f"{path}: written by a newer version", "update session-memory")


def _write(path: str, journal: Iterable[Steps]) -> None:
    left = [steps for steps in journal if steps]
    if left:
        write_atomically(path, encode(left).encode())
    else:
        os.unlink(path)
