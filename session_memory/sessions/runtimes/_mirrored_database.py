"""The base class for bringing the mirrors of a database's sessions up to date."""

from __future__ import annotations

from time import time_ns

from ...common.system.files import names_in, os
from ...common.text.paths import is_name
from ..transcripts._mirrored_files import RECENT_NANOSECONDS, Source, UnreadableError
from ..transcripts.mirror import mark_of
from ._database import DatabaseOfSessions, Error, is_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..transcripts._mirrored_files import Listing
    from ._mirrored import Mirrors


class DatabaseSource(Source):
    """A database of sessions, with its log."""

    HAS_OLDER = True

    def __init__(self, path: str, key: str) -> None:
        super().__init__(path, key, beside=f"{path}-wal")


class MirroredDatabase:
    """Adds the new rows of the sessions in a database to the mirrors.

    `key` names the database in marks. A subclass states the class of connections, READER. Besides
    the members of DatabaseOfSessions, this has `has_sessions`, `is_known`, `session_ids()`, and
    `sessions_since(milliseconds)`, which returns objects with an `id`, the latest first."""

    READER: type[DatabaseOfSessions]

    def __init__(self, mirrors: Mirrors, key: str, path: str) -> None:
        self.mirrors = mirrors
        self.key = key
        self.path = path

    @classmethod
    def bring_up_to_date(
        cls, mirrors: Mirrors, everything: bool, find: Callable[[str], Listing]
    ) -> None:
        """Add new rows of the databases that `find` lists to the mirrors.

        Do this for the sessions that a prompt may report, or for all. Sessions that cannot be read,
        or that another process is adding now, are left for the next time."""

        def add(source: Source, mirrors: Mirrors, most_bytes: int) -> int:
            return cls(mirrors, source.key, source.path).add(everything, most_bytes)

        mirrors.refresh(everything, find, add)

    def add_session(self, database: Any, session: Any, everything: bool) -> int:
        """Add the new rows of a session; return the number of bytes.

        Raises ValueError if it must wait."""
        raise NotImplementedError

    def mirror_ids(self, database: Any) -> set[str]:
        """Return the ids that mirrors of the sessions may have (see `mirror_for`)."""
        runtime, ids = self.mirrors.runtime, database.session_ids()
        return {*ids, *[runtime.copied_id(session_id, self.key) for session_id in ids]}

    def mirror_for(self, path: str) -> tuple[str, str]:
        """Return the folder and the id of the mirror of a session, whose usual mirror is `path`."""
        runtime, config_dir = self.mirrors.runtime, self.mirrors.config_dir
        folder, _, name = runtime.mirror_for(config_dir, path, self.key).rpartition("/")
        return folder, name.removesuffix(".jsonl")

    def add(self, everything: bool, most_bytes: int) -> int:
        """Add the new rows, and return the number of bytes.

        Raises UnreadableError if the database is damaged or of an unknown version, and ValueError
        if something is left for the next time."""
        try:
            with self.READER(self.path) as connection:
                database: Any = connection
                if not database.has_sessions:
                    return 0
                if not database.is_known:
                    title = self.mirrors.runtime.TITLE
                    raise UnreadableError(
                        f"its tables are of another {title}: update session-memory"
                    )
                added, problem = self._add_sessions(database, everything, most_bytes)
                if everything:
                    self._remove_deleted(database)
        except Error as error:
            problem = error
        if problem is not None:
            raise (UnreadableError if is_damaged(problem) else ValueError)(str(problem))
        return added

    def _add_sessions(
        self, database: Any, everything: bool, most_bytes: int
    ) -> tuple[int, Exception | None]:
        """Add the new rows of the sessions; return the number of bytes, and why some are left."""
        since = 0 if everything else (time_ns() - RECENT_NANOSECONDS) // 1_000_000
        added, problem = 0, None
        for session in database.sessions_since(since):
            try:
                if added > most_bytes and not everything:
                    raise ValueError("too much for now")
                if is_name(session.id):
                    database.begin()
                    try:
                        added += self.add_session(database, session, everything)
                    finally:
                        database.end()
            except Exception as error:  # an odd session fails alone, for now
                problem = error if problem is None or is_damaged(error) else problem
        return added, problem

    def _remove_deleted(self, database: Any) -> None:
        """Remove the mirrors of sessions that were deleted; none if the database was lost.

        An empty one stays while a rule hides its session."""
        known = {f"{mirror_id}.jsonl" for mirror_id in self.mirror_ids(database)}
        root = self.mirrors.root
        folders = [f"{root}/{name}" for name in names_in(root) if known]
        for folder in folders:
            for name in names_in(folder):
                path = f"{folder}/{name}"
                if not name.endswith(".jsonl"):
                    folders.append(path)
                elif name not in known:
                    mark = mark_of(path)
                    is_of_this = self.key in mark.get("files", ()) and database.is_same
                    if is_of_this and not self.mirrors.exclusion.hides_deleted(mark):
                        os.unlink(path)
