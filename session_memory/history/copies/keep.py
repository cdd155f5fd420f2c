"""Keeps transcripts, whole or redacted, if the person has enabled that.

New content is kept session by session, after the store has ingested it: only the store can tell
which parts are excluded or forgotten, and no session with such a part is kept. If the pack is full,
sessions that their runtime will delete later make room for those that it will delete sooner.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from ...common.errors import SessionMemoryError, described
from ...common.system.files import Closing
from ...common.system.json import encode
from ...common.system.zstd import DamagedFileError, NoLibraryError
from ...common.text.format import counted
from ...common.text.timestamps import now_milliseconds
from ...sessions.confined_files import OutsideGroupError
from ...sessions.runtimes.backup import FilesOfSession
from ...sessions.runtimes.base import Runtime
from ...sessions.settings.compiled import Settings
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.mirror import hidden_by
from ..disk import room_for_kept
from ..forgotten_marks import repeats
from ..store.ingest.values import FileState
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from .chunks import LineTooLongError
from .pack import FORMS, ChangedFileError, KeptFile, KeptSession, Pack, pack_path


class _FullError(SessionMemoryError):
    """The data fills disk_bytes, and no kept session can make room."""


class Candidate(NamedTuple):
    """A session of a runtime, with the store's facts about it.

    Below `confined_to` no symlink is followed."""

    runtime: Runtime
    config_dir: str
    files: FilesOfSession
    state: FileState
    confined_to: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.state.home, self.runtime.name, self.config_dir, self.files.session_id

    @property
    def only_grows(self) -> bool:
        """Check if the runtime only appends to the session's transcript."""
        return self.files.files[0].path.endswith(".jsonl") and not self.runtime.backup.REWRITES

    @property
    def modified(self) -> int:
        """Return when its transcript last changed, in milliseconds since 1970."""
        return self.files.files[0].stamp[2] // 1_000_000

    def as_kept(self, form: str) -> KeptSession:
        cwd, title, now = self.state.cwd, self.state.title, now_milliseconds()
        return KeptSession(0, *self.key, form, cwd, title, self.modified, now, None, 0)


class KeepReport(NamedTuple):
    """The number of sessions with new content, and an error line for each failure."""

    kept: int
    problems: list[str]


def keep_sessions(
    store: SqliteStore,
    location: StoreLocation,
    is_over: Callable[[], bool],
) -> KeepReport:
    """Keep new content until `is_over`. Raises DatabaseError, OSError."""
    settings = location.home.settings()
    if settings.keep not in FORMS and not os.path.exists(pack_path(location.database)):
        return KeepReport(0, [])
    with closing(Pack(pack_path(location.database))) as pack:
        if pack.obstacle:
            raise pack.obstacle
        problems = (
            [f"{pack.path} was damaged and is now {pack.quarantined}"] if pack.quarantined else []
        )
        candidates, excluded = _candidates(store, location, problems)
        known = {session.key: session for session in pack.sessions() if not session.is_earlier}
        has = {candidate.key for candidate in (*candidates, *excluded)}
        pack.set_gone(
            [session.id for key, session in known.items() if key not in has], now_milliseconds()
        )
        dropped = [known[candidate.key] for candidate in excluded if candidate.key in known]
        if dropped:
            with pack.transaction():
                pack.drop([session.id for session in dropped])
            pack.shrink()
        room = room_for_kept(location, settings.disk_bytes)
        keeping = _Keeping(pack, settings, room, known, partial(_repeats_forgotten, location))
        done = keeping.keep(candidates, is_over) if settings.keep in FORMS else KeepReport(0, [])
        return KeepReport(done.kept, problems + done.problems)


def _candidates(
    store: SqliteStore, location: StoreLocation, problems: list[str]
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the sessions that may be kept, and those with an excluded or forgotten part."""
    may: list[Candidate] = []
    may_not: list[Candidate] = []
    with_excluded = store.files_with_excluded()
    for home in dict.fromkeys(directory.home for directory in location.watched):
        states = {state.session_id: state for state in store.file_states(home).values()}
        privacy = Privacy(location.environ, location.home, location.home_for(home))
        for (runtime, config_dir), confined_to in {
            directory.origin: directory.confined_to
            for directory in location.watched
            if directory.home == home and directory.origin
        }.items():
            for files in _sessions_of(runtime, config_dir, problems):
                state = states.get(files.session_id)
                if state is None or not files.files[0].stamp[2]:
                    continue
                candidate = Candidate(runtime, config_dir, files, state, confined_to)
                is_hidden = (
                    state.id in with_excluded
                    or hidden_by(f"{state.root}/{state.file_path}")
                    or privacy.forgotten_until(files.session_id, state.cwd) is not None
                )
                (may_not if is_hidden else may).append(candidate)
    return sorted(may, key=lambda candidate: candidate.modified), may_not


def _sessions_of(
    runtime: Runtime, config_dir: str, problems: list[str]
) -> Iterator[FilesOfSession]:
    """Yield the sessions of a runtime, up to the first that cannot be read."""
    try:
        yield from runtime.backup.sessions(config_dir)
    except OSError as error:
        problems.append(f"{config_dir}: its sessions could not be kept: {described(error)}")


def _repeats_forgotten(location: StoreLocation, candidate: Candidate) -> bool:
    """Check if a session is a fork or copy of a forgotten one. Raises OSError."""
    state = candidate.state
    privacy = Privacy(location.environ, location.home, location.home_for(state.home))
    return repeats(
        f"{state.root}/{state.file_path}", privacy.forgotten(state.cwd), state.session_id
    )


class _Keeping:
    """One run over the sessions, which begins with those that will be deleted first."""

    def __init__(
        self,
        pack: Pack,
        settings: Settings,
        room: int | None,
        known: dict[tuple[str, str, str, str], KeptSession],
        repeats_forgotten: Callable[[Candidate], bool],
    ) -> None:
        self._pack = pack
        self._repeats_forgotten = repeats_forgotten
        self._form = settings.keep
        self._limit = settings.disk_bytes
        self._room = room
        self._known = known

    def keep(self, candidates: list[Candidate], is_over: Callable[[], bool]) -> KeepReport:
        """Keep the new content of the candidates."""
        kept, problems, left = 0, [], 0
        for at, candidate in enumerate(candidates):
            try:
                kept += self._keep(candidate, is_over)
            except (ChangedFileError, FileNotFoundError):
                continue  # it is read again the next time
            except _FullError:
                left = len(candidates) - at
                break
            except (
                LineTooLongError,
                OutsideGroupError,
                NoLibraryError,
                DamagedFileError,
                OSError,
            ) as error:
                problems.append(
                    f"{candidate.files.files[0].source}: it could not be kept: {described(error)}"
                )
            if is_over():
                break
        self._drop_beyond_room()
        if left:
            more = f"session-memory config disk_bytes {2 * self._limit}"
            problems.append(
                f"the limit disk_bytes is reached, so {counted(left, 'session')} could not be "
                f"kept; to raise it: {more}"
            )
        return KeepReport(kept, problems)

    def _keep(self, candidate: Candidate, is_over: Callable[[], bool]) -> bool:
        """Keep the new content of a session; return whether it had any."""
        known = self._known.get(candidate.key)
        before = {file.path: file for file in self._pack.files(known.id)} if known else {}
        changed = [
            file
            for file in candidate.files.files
            if file.path not in before or before[file.path].stamp != encode(file.stamp)
        ]
        if known and known.form != self._form:
            changed = list(candidate.files.files)
        elif not changed:
            if known and known.gone_at is not None:
                with self._pack.transaction():
                    self._pack.begin(known._replace(gone_at=None))
            return False
        if not known and self._repeats_forgotten(candidate):
            return False
        is_first = True
        for file in changed:
            is_whole = False
            while not is_whole:
                with (
                    Closing(file.open(candidate.confined_to)) as descriptor,
                    self._pack.transaction(),
                ):
                    if is_first:
                        self._make_way(candidate, known, before, descriptor, file.path)
                    session = self._pack.begin(candidate.as_kept(self._form))
                    is_whole, is_first = self._pack.keep_file(session, file, descriptor), False
                    self._make_room(candidate)
                if is_over():
                    return True
        return True

    def _drop_beyond_room(self) -> None:
        """Drop sessions that the runtime still has, the latest first, until the data fits."""
        for session in self._pack.sessions() if self._room is not None else ():
            if self._pack.size() <= (self._room or 0):
                return
            if session.gone_at is None and not session.is_earlier:
                with self._pack.transaction():
                    self._pack.drop([session.id])

    def _make_way(
        self,
        candidate: Candidate,
        known: KeptSession | None,
        before: dict[str, KeptFile],
        descriptor: int,
        path: str,
    ) -> None:
        """Make way for a session's content: drop its kept content in another form, or set it aside.

        It is set aside if the transcript no longer begins with it."""
        if known and known.form != self._form:
            self._pack.drop([known.id])
            return
        is_transcript = path == candidate.files.files[0].path and candidate.only_grows
        if (
            known
            and path in before
            and is_transcript
            and not self._pack.is_continued(before[path], descriptor)
        ):
            self._pack.set_earlier(known)

    def _make_room(self, candidate: Candidate) -> None:
        """Drop sessions that the runtime still has, the latest first, until the pack fits.

        Raises _FullError if no session remains that changed later than this one."""
        if self._room is None or self._pack.size() <= self._room:
            return
        for kept in self._pack.sessions():
            if kept.gone_at is None and not kept.is_earlier and kept.modified > candidate.modified:
                self._pack.drop([kept.id])
                if self._pack.size() <= self._room:
                    return
        raise _FullError("full")


def kept_of(location: StoreLocation, is_meant: Callable[[KeptSession], bool]) -> list[KeptSession]:
    """Return the kept sessions that `is_meant` accepts, including earlier ones.

    Raises DatabaseError."""
    path = pack_path(location.database)
    if not os.path.exists(path):
        return []
    with closing(Pack(path)) as pack:
        return [session for session in pack.sessions() if is_meant(session)]


def forget_kept(location: StoreLocation, sessions: Iterable[Sequence[str]]) -> None:
    """Drop the kept copies of sessions, each as (group, id). Raises DatabaseError."""
    path, wanted = pack_path(location.database), {tuple(pair) for pair in sessions}
    if not wanted or not os.path.exists(path):
        return
    with closing(Pack(path)) as pack:
        with pack.transaction():
            pack.drop(
                [
                    session.id
                    for session in pack.sessions()
                    if (session.home, session.session_id) in wanted
                ]
            )
        pack.shrink()
