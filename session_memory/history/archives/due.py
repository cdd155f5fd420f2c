"""Due archives: of conversations that ended without a hook, and of those from before the install.

A conversation ends without a hook if its runtime was killed, for example.
"""

import functools
import math
import os
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress

from ...common.errors import SessionMemoryError
from ...common.system.files import Opened
from ...sessions.runtimes.backup import DAY_SECONDS
from ...sessions.runtimes.detection import runtime_of
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import private_beside, user_dir
from ...sessions.settings.privacy import Privacy
from ...sessions.settings.registry import agent_home
from ...sessions.transcripts.mirror import hidden_by
from ...sessions.transcripts.sessions import UnknownSessionError, find_sessions
from ..copies.keep import kept_of
from ..store.ingest.intake import SOURCE
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from ..store.sqlite.tool_uses import common_items
from ..store.values import ITEM_BITS, NUMBERS, Filter
from .list import KnownArchives, list_archives, private_folder_if_there, settle
from .writer import ArchiveSource, archive_transcript

# a transcript may be ingested this long after the end of its conversation
SLACK_SECONDS = 24 * 3600
_EVERY = 10**9


DueArchive = tuple[str, str]  # the id of a session, and its transcript


def due_archives(
    store: SqliteStore, location: StoreLocation, since: float, known: KnownArchives
) -> Iterator[DueArchive]:
    """Yield the sessions whose last conversation has ended and is not archived.

    Sessions come first that a mirror shows to be hidden (see `_hidden_by_mirror`), because writing
    their archives again hides these. All belong to a person or an agent. All that ended before
    `since` (seconds since 1970) count as archived. Sessions of an agent home or of a host's group
    are archived there instead. `known` has the run's archives. Raises DatabaseError, OSError."""
    since -= SLACK_SECONDS + location.settings.gap / 1000
    directory = location.home.conversations_dir
    if os.path.isdir(directory):
        yield from _hidden_by_mirror(store, directory, known)
    for session_id, transcript in _ended(store, round(since * 1000), archived_elsewhere(location)):
        if not _is_archived(known, directory, session_id, os.stat(transcript).st_mtime):
            yield session_id, transcript


def _hidden_by_mirror(
    store: SqliteStore, directory: str, known: KnownArchives
) -> Iterator[DueArchive]:
    """Yield the sessions with an archive in `directory` that their mirror shows to be hidden.

    An archive that says so already is left out. Others follow that begin with a hidden one's
    messages."""
    excluded = store.excluded_files()
    states = store.file_states("").values() if excluded else ()
    due = {state.id: (state.session_id, f"{state.root}/{state.file_path}") for state in states}
    hidden = {id: by for id in excluded & {*due} if (by := hidden_by(due[id][1]))}
    for id, by in hidden.items():
        archive = known.find(directory, due[id][0])
        if archive and archive[1].get("is_excluded") != by:
            yield due[id]
    for id in _copies_of(hidden, due, store) if hidden else ():
        if known.find(directory, due[id][0]):
            yield due[id]


def _copies_of(
    hidden: Container[int], due: Mapping[int, DueArchive], store: SqliteStore
) -> Iterator[int]:
    """Yield the files that begin with the messages of a hidden one in their folder."""
    shared = {
        (item, of) for item, of in common_items(store) if not (item & NUMBERS or of & NUMBERS)
    }
    for item, of in shared:
        pair = [id for id in (item >> ITEM_BITS, of >> ITEM_BITS) if id in due]
        folders = {os.path.dirname(due[id][1]) for id in pair}
        shown = [id for id in pair if id not in hidden]
        if len(pair) == 2 and len(folders) == len(shown) == 1:
            yield from shown


def archived_elsewhere(location: StoreLocation) -> Callable[[str], bool]:
    """Return a function that checks if sessions of a directory are archived in an agent home.

    It looks for homes above a directory once: 20,000 sessions are in few directories."""

    @functools.cache
    def is_elsewhere(directory: str) -> bool:
        environ = location.environ
        stop = user_dir(environ)
        folders = [runtime.SESSIONS_FOLDER for runtime in all_runtimes()]
        return any(agent_home(directory, environ, stop=stop, folder=folder) for folder in folders)

    return (lambda directory: False) if location.home.sessions_dir else is_elsewhere


def history(
    store: SqliteStore, location: StoreLocation, is_elsewhere: Callable[[str], bool]
) -> Iterator[DueArchive]:
    """Yield all sessions to archive, however old, except those that rules exclude.

    Sessions that their runtime will delete soonest come first. Raises DatabaseError, OSError."""
    hidden = store.excluded_files() | store.files_with_excluded()
    states = store.file_states("").values()
    shown = {f"{state.root}/{state.file_path}" for state in states if state.id not in hidden}
    times = _archive_times(location.home.conversations_dir)
    expiry = _expiry(store, location)
    due = []
    for session_id, transcript in _ended(store, None, is_elsewhere):
        with suppress(OSError):
            if transcript in shown and times.get(session_id, -1.0) < os.stat(transcript).st_mtime:
                due.append((expiry(transcript), session_id, transcript))
    yield from [(session_id, transcript) for _, session_id, transcript in sorted(due)]


def _ended(
    store: SqliteStore, since: int | None, is_elsewhere: Callable[[str], bool]
) -> Iterator[DueArchive]:
    """Yield the sessions with a transcript whose last conversation ended at `since` or later.

    `since` is in milliseconds."""
    states = store.file_states("")
    seen = set()
    for conversation in store.conversations(Filter(since=since, limit=_EVERY)):
        state = states.get(conversation.source_file)
        if conversation.session_id in seen or conversation.home or state is None:
            continue
        seen.add(conversation.session_id)
        transcript = f"{state.root}/{state.file_path}"
        if conversation.status == "active" or not os.path.isfile(transcript):
            continue
        if not is_elsewhere(conversation.cwd):
            yield conversation.session_id, transcript


def _expiry(store: SqliteStore, location: StoreLocation) -> Callable[[str], float]:
    """Return a function that returns when a transcript will be deleted by its runtime.

    The time is in seconds since 1970."""
    known = store.directories()
    places = []
    for directory in location.watched:
        if directory.origin:
            runtime, config_dir = directory.origin
            places.append(
                (f"{directory.root}/", runtime, runtime.backup.deletion(config_dir, known).days)
            )

    def expiry(transcript: str) -> float:
        for root, runtime, days in places:
            if transcript.startswith(root) and days is not None:
                return runtime.backup.last_used(transcript) + days * DAY_SECONDS
        return math.inf

    return expiry


def _archive_times(directory: str) -> dict[str, float]:
    """Return when each session's archive was written, in seconds since 1970."""
    times: dict[str, float] = {}
    for folder in (directory, private_beside(directory)):
        for path, facts in list_archives(folder):
            with suppress(OSError):
                times[facts["session"]] = os.stat(path).st_mtime
    return times


def only_in_store(store: SqliteStore, location: StoreLocation) -> int:
    """Return the number of sessions that only the store has.

    Their runtime has deleted them, and they have no archive or kept copy. Raises DatabaseError."""
    elsewhere = {
        (session.home, session.session_id) for session in kept_of(location, lambda session: True)
    }
    for archives in location.archives:
        elsewhere.update(
            [(archives.home, session) for session in _archive_times(archives.directory)]
        )
    states = [
        state
        for home in {directory.home for directory in location.watched}
        for state in store.file_states(home).values()
    ]
    return len(
        {
            (state.home, state.session_id)
            for state in states
            if state.status == "gone" and state.source != SOURCE and state.next_ordinal
        }
        - elsewhere
    )


def write_due(
    due: Iterator[DueArchive],
    location: StoreLocation,
    known: KnownArchives,
    is_over: Callable[[], bool],
) -> tuple[int, list[str]]:
    """Write archives until `is_over`; return their number, and an error line per failure.

    `known` has the run's archives."""
    home, settings = location.home, location.home.settings()
    privacy = Privacy(location.environ, home)
    names: dict[str, str] | None = None
    written, problems = 0, []
    for session_id, transcript in due:
        if names is None:
            settle(home.conversations_dir, privacy)
            names = _names(location)
        try:
            with Opened(transcript) as descriptor:
                runtime = runtime_of(descriptor)
            if runtime:
                source = ArchiveSource(
                    session_id, transcript, runtime, name=names.get(session_id, "")
                )
                directory = home.conversations_dir
                path = archive_transcript(
                    source, directory, settings, time.time(), privacy=privacy, known=known
                )
                written += bool(path)
        except (SessionMemoryError, OSError) as error:
            problems.append(f"{transcript}: it could not be archived: {error}")
        if is_over():
            break
    return written, problems


def _is_archived(known: KnownArchives, directory: str, session_id: str, modified: float) -> bool:
    """Return whether a session's archive is newer than its transcript.

    The transcript was written at `modified`, in seconds since 1970."""
    if not os.path.isdir(directory):
        return False
    with private_folder_if_there(directory) as private:
        for folder in filter(None, (directory, private)):
            archive = known.find(folder, session_id)
            if archive:
                return os.stat(archive[0]).st_mtime >= modified
    return False


def _names(location: StoreLocation) -> dict[str, str]:
    if not location.home.sessions_dir:
        return {}
    try:
        sessions = find_sessions(location.home.root, False, location.environ, with_private=True)
    except UnknownSessionError:
        return {}
    return {session.id: session.session.name for session in sessions}
