"""Due archives: of conversations that ended without a hook to archive them, as if a runtime was killed."""

import os
import time
from collections.abc import Callable, Iterator, Mapping

from ..archives.list import KnownArchives, private_folder_if_there, settle
from ..archives.writer import ArchiveSource, archive_session
from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..runtimes.detection import runtime_of
from ..settings.privacy import Privacy
from ..settings.registry import agent_home
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from ..store.values import Filter
from ..system.files import Opened
from ..transcripts.sessions import UnknownSessionError, find_sessions

SLACK_SECONDS = 24 * 3600  # a transcript may be ingested this long after its conversation ended
_EVERY = 10**9


DueArchive = tuple[str, str]  # the id of a session, and its transcript


def due_archives(
    store: SqliteStore, location: StoreLocation, since: float, environ: Mapping[str, str]
) -> Iterator[DueArchive]:
    """Yield the sessions of a person or an agent whose last conversation has ended and is not archived, if all were
    archived at `since` (seconds since the epoch). Sessions of an agent home or of a host's group are archived there
    instead. Raises DatabaseError, OSError."""
    since -= SLACK_SECONDS + location.settings.gap / 1000
    directory = location.home.conversations_dir
    states = store.file_states("")
    known, seen = KnownArchives(), set()
    for conversation in store.conversations(Filter(since=round(since * 1000), limit=_EVERY)):
        state = states.get(conversation.source_file)
        if conversation.session_id in seen or conversation.home or state is None:
            continue
        seen.add(conversation.session_id)
        transcript = f"{state.root}/{state.file_path}"
        if conversation.status == "active" or not os.path.isfile(transcript):
            continue
        agents = (
            agent_home(conversation.cwd, environ, stop=environ.get("HOME", ""), folder=runtime.SESSIONS_FOLDER)
            for runtime in all_runtimes()
        )
        if not location.home.sessions_dir and any(agents):
            continue
        if not _is_archived(known, directory, conversation.session_id, os.stat(transcript).st_mtime):
            yield conversation.session_id, transcript


def write_due(
    due: Iterator[DueArchive], location: StoreLocation, environ: Mapping[str, str], is_over: Callable[[], bool]
) -> tuple[int, list[str]]:
    """Write archives until `is_over`; return their number, and an error line for each failure."""
    home, settings = location.home, location.home.settings()
    privacy = Privacy(environ, home)
    names: dict[str, str] | None = None
    known, written, problems = KnownArchives(), 0, []
    for session_id, transcript in due:
        if names is None:
            settle(home.conversations_dir, privacy)
            names = _names(location, environ)
        try:
            with Opened(transcript) as descriptor:
                runtime = runtime_of(descriptor)
            if runtime:
                source = ArchiveSource(session_id, transcript, runtime, name=names.get(session_id, ""))
                directory = home.conversations_dir
                path = archive_session(source, directory, settings, time.time(), privacy=privacy, known=known)
                written += bool(path)
        except (SessionMemoryError, OSError) as error:
            problems.append(f"{transcript}: it could not be archived: {error}")
        if is_over():
            break
    return written, problems


def _is_archived(known: KnownArchives, directory: str, session_id: str, modified: float) -> bool:
    """Return whether a session's archive is newer than its transcript, written at `modified` (seconds since 1970)."""
    if not os.path.isdir(directory):
        return False
    with private_folder_if_there(directory) as private:
        for folder in filter(None, (directory, private)):
            found = known.find(folder, session_id)
            if found:
                return os.stat(found[0]).st_mtime >= modified
    return False


def _names(location: StoreLocation, environ: Mapping[str, str]) -> dict[str, str]:
    if not location.home.sessions_dir:
        return {}
    try:
        found = find_sessions(location.home.root, False, environ, with_private=True)
    except UnknownSessionError:
        return {}
    return {one.id: one.session.name for one in found}
