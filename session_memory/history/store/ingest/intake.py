"""Ingests new content of the watched directories, and archives of lost transcripts."""

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any, NamedTuple

from ....common.system.files import Opened, path_text, read_at
from ....common.system.json import as_string
from ....common.system.sqlite import DatabaseError
from ....common.text.format import one_line
from ....common.text.sanitize import for_people
from ....common.text.timestamps import epoch_seconds
from ....sessions.confined_files import OutsideGroupError, pinned
from ....sessions.transcripts.earlier_paths import note_repositories
from ....sessions.transcripts.marks import key_of_id
from ....sessions.transcripts.mirror import gone, remove_gone
from ....sessions.transcripts.reader import USER_RANK
from ...archives.format import ASKING, TOOL, messages_in, title_in
from ...archives.list import list_archives, private_folder
from ..location import Archives, StoreLocation
from ..sqlite._archived_items import KnownItem, KnownMessages, known_keys, known_messages
from ..sqlite.engine import SqliteStore
from ..values import FOREIGN_ROOT, TOOL_ROLE, Progress, key_of
from ._wider_keys import widen_keys
from .extract import is_unchanged
from .ingestion import BATCH_BYTES, Ingestion, IngestReport
from .sources import SourceDirectory
from .values import Batch, FileState, NewEntry, NewTool


def take_in(
    store: SqliteStore,
    location: StoreLocation,
    progress: Progress | None = None,
    *,
    batch_bytes: int = BATCH_BYTES,
    workers: int = 0,
) -> IngestReport:
    """Ingest and report all new content.

    If an error occurs, the content stored so far stays. Raises DatabaseError."""
    widen_keys(store, location)
    report = IngestReport()
    for home in dict.fromkeys([directory.home for directory in location.watched]):
        ingestion = Ingestion(store, home, progress, batch_bytes, workers)
        try:
            for directory in location.watched:
                if directory.home == home and directory.is_expected():
                    _scan(ingestion, store, home, directory)
            ingestion.finish()
        finally:
            if location.home.user_dir:
                note_repositories(
                    location.home.repositories_file, ingestion.directories, location.home.user_dir
                )
        report.add(ingestion.report)
        del ingestion  # the states of 20,000 files take 18 MB, and archives read them again
    # nothing can be found, not even sessions that a runtime has deleted and their archives
    if location.home.settings().keep == "none":
        for home in dict.fromkeys(directory.home for directory in location.watched):
            report.forgotten += _forget_gone(store, home)
        return report
    for archives in location.archives:
        # Listing archives takes a while, so do it only if something has changed or nothing is known
        # yet.
        home = archives.home
        if (
            report.bytes
            or report.gone
            or store.incomplete_sessions(home)
            or not store.file_states(home)
        ):
            report.add(_take_archives(store, archives))
    return report


def _forget_gone(store: SqliteStore, home: str) -> int:
    """Forget the transcripts that are gone, and all archives; return the number of transcripts."""
    states = store.file_states(home)
    gone = {key for key, state in states.items() if state.status == "gone"}
    store.forget(home, *[key for key in states if key in gone or states[key].source == SOURCE])
    return len(gone)


def _scan(ingestion: Ingestion, store: SqliteStore, home: str, directory: SourceDirectory) -> None:
    """Ingest the new entries of a directory, and delete our copies of deleted transcripts."""
    ingestion.scan(directory)
    if gone(directory.path):
        remove_gone(
            directory.path, {key: state.offset for key, state in store.file_states(home).items()}
        )


class Pending(NamedTuple):
    """The number of files with new content, its approximate bytes, and the number of all files."""

    files: int
    bytes: int
    all_files: int


def pending(store: SqliteStore, watched: Iterable[SourceDirectory]) -> Pending:
    """Return the amount of new content in these directories.

    Files that failed in their present state do not count. Raises DatabaseError."""
    new: list[int] = []
    total = 0
    states_of, unread_of = cache(store.file_states), cache(store.unread_files)
    for directory in watched:
        states, unread = states_of(directory.home), unread_of(directory.home)
        try:
            files = directory.files()
        except (OSError, OutsideGroupError):
            continue
        total += len(files)
        for file in files:
            state, noted = states.get(file.key), unread.get(file.key)
            if not is_unchanged(file, state) and not (noted and noted[3:6] == file.stamp):
                is_same = (
                    state is not None and state.inode == file.inode and state.offset <= file.size
                )
                new.append(file.size - state.offset if state and is_same else file.size)
    return Pending(sum(map(bool, new)), sum(new), total)


SOURCE = "archive"
PREFIX = "conversations/"


def _take_archives(store: SqliteStore, archives: Archives) -> IngestReport:
    """Store the archives of sessions whose transcript is missing or damaged.

    If a session's transcript is found again, its archive is forgotten. A session archived under a
    name that a person gave it keeps that name as its title. Raises DatabaseError; unreadable
    archives are problems in the report."""
    intake = _ArchiveIntake(store, archives)
    intake.forget_replaced()
    try:
        root, place = archives.confined_to, archives.directory
        with pinned(root, place) if root else nullcontext(place) as directory:
            for path, facts in _every_archive(directory):
                intake.take(path, facts)
    except FileNotFoundError:
        pass
    except OutsideGroupError as error:
        intake.report.problems.append((archives.directory, str(error)))
    intake.give_titles()
    return intake.report


class _ArchiveIntake:
    """Stores the archives in one directory, at most one of each session."""

    def __init__(self, store: SqliteStore, archives: Archives) -> None:
        self.report = IngestReport()
        self._store = store
        self._archives = archives
        states = store.file_states(archives.home)
        self._transcripts = [state for state in states.values() if state.source != SOURCE]
        sessions = {state.session_id for state in self._transcripts}
        self._known = sessions - store.incomplete_sessions(archives.home)
        self._keys = set(states)
        self._stored = [
            state
            for state in states.values()
            if state.source == SOURCE and state.root == archives.directory
        ]
        self._before = {
            state.session_id: state for state in self._stored if state.session_id not in self._known
        }
        # if a session has several archives, the one that ends last counts
        self._titles: dict[str, tuple[float, str]] = {}

    def forget_replaced(self) -> None:
        """Forget archives, and repositories' transcripts, of sessions with a transcript now."""
        own_ids = {
            state.session_id for state in self._transcripts if not state.root.endswith(FOREIGN_ROOT)
        }
        foreign = [
            state.file_path
            for state in self._transcripts
            if state.root.endswith(FOREIGN_ROOT) and state.session_id in own_ids
        ]
        replaced = [state.file_path for state in self._stored if state.session_id in self._known]
        for keys in (foreign, replaced):
            self._store.forget(self._archives.home, *keys)

    def take(self, path: str, facts: dict[str, Any]) -> None:
        """Store one archive, unless the store has its session. Raises DatabaseError."""
        session = facts["session"]
        if facts.get("group", "") not in ("", self._archives.home):
            return
        if facts.get("is_named"):
            last = epoch_seconds(facts.get("last")) or 0.0
            title = (last, facts["title"])
            self._titles[session] = max(self._titles.get(session, (0.0, "")), title)
        if session in self._known:
            return
        self._known.add(session)  # while an archive is moved, it may be in both folders
        before = self._before.get(session)
        key = self._key_of(path, session, before)
        try:
            archive = _FoundArchive(path, key, facts, before)
            _take_archive(self._store, archive, self._archives, self.report)
        except DatabaseError:
            raise
        except Exception as error:  # it is that archive's, and no other's
            problem = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self.report.problems.append((f"{self._archives.directory}/{key}", problem))

    def _key_of(self, path: str, session: str, before: FileState | None) -> str:
        key = before.file_path if before else PREFIX + path_text(os.path.basename(path))
        # Two folders may each have an archive of the same name
        if not before and key in self._keys:
            key = f"{PREFIX}{session}.md"
        self._keys.add(key)
        return key

    def give_titles(self) -> None:
        """Give sessions with transcripts the titles that a person chose."""
        for before in self._transcripts:
            if before.session_id in self._titles:
                title = one_line(for_people(self._titles[before.session_id][1]))
                after = before._replace(title=title, title_rank=USER_RANK)
                if after != before:
                    self._store.write([Batch(before, after, [], [])])


class _FoundArchive(NamedTuple):
    """An archive in its folder.

    It has the path, the key in the store, the facts in the last line, and the earlier state if the
    store has one."""

    path: str
    key: str
    facts: dict[str, Any]
    before: FileState | None


def _every_archive(directory: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the facts of every archive, including private ones.

    Rules are applied when the store is read."""
    yield from sorted(list_archives(directory), key=lambda dated: dated[0])
    with suppress(OSError, OutsideGroupError), private_folder(directory) as folder:
        yield from sorted(list_archives(folder), key=lambda dated: dated[0])


def _take_archive(
    store: SqliteStore, archive: _FoundArchive, archives: Archives, report: IngestReport
) -> None:
    facts, before = archive.facts, archive.before
    ends = _keys_of_ends(archives.home, facts)
    with Opened(archive.path) as descriptor:
        status = os.fstat(descriptor)
        is_same = before and (before.file_size, before.inode) == (status.st_size, status.st_ino)
        if is_same and before and (before.generation == _COMPARED or not known_keys(store, ends)):
            return
        text = read_at(descriptor, 0, status.st_size).decode("utf-8", "replace")
    if before:
        store.forget(archives.home, archive.key)
    known = known_messages(store, archives.home, facts["session"], ends)
    state = FileState(
        archives.home,
        archive.key,
        archives.directory,
        SOURCE,
        facts["session"],
        last_modified=status.st_mtime_ns // 1_000_000,
        file_size=status.st_size,
        offset=status.st_size,
        generation=_COMPARED if known else 1,
        inode=status.st_ino,
        cwd=for_people(str(facts.get("cwd") or "")),
        title_rank=USER_RANK if facts.get("is_named") else 1,
        title=for_people(title_in(text.partition("\n")[0])),
        first_entry_timestamp=_milliseconds(facts.get("first")),
        last_entry_timestamp=_milliseconds(facts.get("last")),
    )
    entries = _entries(text, facts, state, known)
    if store.write([Batch(None, state, entries, [])]) != [None]:
        report.files += 1
        report.changed += 1
        report.bytes += status.st_size
        report.entries += len(entries)


_COMPARED = 2  # the generation of an archive whose messages have been compared with transcripts


def _keys_of_ends(home: str, facts: dict[str, Any]) -> list[int]:
    """Return the store's keys for the first and the last entry of an archive."""
    ends = [
        (as_string(facts.get(f"{end}_id")), _milliseconds(facts.get(end)))
        for end in ("first", "last")
    ]
    return [key_of_id(home, id, when) for id, when in ends if id]


def _entries(
    text: str, facts: dict[str, Any], state: FileState, known: KnownMessages | None
) -> list[NewEntry]:
    """Return the messages of an archive; known messages of a transcript become copies."""
    said = [message for message in messages_in(text) if message.speaker]
    entries = []
    for number, (speaker, text, at) in enumerate(said):
        words = for_people(text)
        when = None if at is None else round(at * 1000)
        key = key_of(f"{state.home}{SOURCE} {state.session_id} {number} {speaker} {words}")
        role = "user" if speaker in ASKING else "assistant"
        items = known.take(TOOL_ROLE if speaker == TOOL else role, words, when) if known else None
        if items is not None:
            entries += _copies(items, number, role, state.cwd, is_tool=speaker == TOOL)
            continue
        if number == 0 and when is None:
            when = state.first_entry_timestamp
        if number == len(said) - 1:
            when = state.last_entry_timestamp or when
        if speaker == TOOL:
            name, _, argument = words.partition(" ")
            tool = NewTool(key, key, name or "tool", "other", argument)
            entries.append(NewEntry(key, 0, number, role, "", when, state.cwd, (tool,)))
        else:
            entries.append(NewEntry(key, 0, number, role, words, when, state.cwd))
    return entries


def _copies(
    items: list[KnownItem], number: int, role: str, cwd: str, *, is_tool: bool
) -> list[NewEntry]:
    """Return entries that are copies of these items.

    An item whose key is lost is left out, because it would be stored twice."""
    copies = []
    for key, text, at in items:
        if key is not None and is_tool:
            name, _, argument = text.partition(" ")
            tool = NewTool(key, key, name, "other", argument)
            copies.append(NewEntry(key, 0, number, role, "", at, cwd, (tool,)))
        elif key is not None:
            copies.append(NewEntry(key, 0, number, role, text, at, cwd))
    return copies


def _milliseconds(text: object) -> int | None:
    seconds = epoch_seconds(text)
    return None if seconds is None else round(seconds * 1000)
