"""kept.db: the kept sessions, their files, and the files' chunks, with all the SQL about them.

A chunk is stored once. New content of a file is committed with the list of its chunks, in one
transaction: if a process is killed or the disk is full, the earlier content remains.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import SessionMemoryError
from ...common.system import sqlite
from ...common.system.files import read_at
from ...common.system.json import encode
from ...sessions.transcripts.lines import last_line_end, settled_from
from .chunks import (
    DamagedChunkError,
    checksum,
    chunks_of,
    masked,
    packed,
    redacted,
    unmasked,
    unpacked,
)

if TYPE_CHECKING:
    from apsw import Connection

    from ...sessions.runtimes.backup import SessionFile

PACK_FILE = "kept.db"
TEXT, REDACTED, WHOLE, NONE = "text", "redacted", "whole", "none"
FORMS = (REDACTED, WHOLE)
STEP_BYTES = 64 * 1024 * 1024  # of a file that one transaction stores
_CHECKED = 8  # the number of chunks at each end that are compared to see if a file has only grown
_COLUMNS = (
    "id, home, runtime, config_dir, session_id, form, cwd, title, modified, kept_at, "
    "gone_at, is_earlier"
)
_TABLES = """
    CREATE TABLE kept_sessions (
        id INTEGER PRIMARY KEY, home TEXT NOT NULL, runtime TEXT NOT NULL, config_dir TEXT NOT NULL,
        session_id TEXT NOT NULL, form TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL,
        modified INTEGER NOT NULL, kept_at INTEGER NOT NULL, gone_at INTEGER, is_earlier INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX kept_sessions_by_id ON kept_sessions (home, runtime, config_dir, session_id)
        WHERE NOT is_earlier;
    CREATE TABLE kept_files (
        id INTEGER PRIMARY KEY, session INTEGER NOT NULL, path TEXT NOT NULL, stamp TEXT NOT NULL,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, UNIQUE (session, path)
    );
    CREATE TABLE kept_chunks (
        id INTEGER PRIMARY KEY, checksum BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, how TEXT NOT NULL,
        content BLOB NOT NULL
    );
    CREATE TABLE kept_parts (
        file INTEGER NOT NULL, number INTEGER NOT NULL, chunk INTEGER NOT NULL, size INTEGER NOT NULL,
        source BLOB NOT NULL, is_masked INTEGER NOT NULL, PRIMARY KEY (file, number)
    ) WITHOUT ROWID;
    CREATE INDEX kept_parts_by_chunk ON kept_parts (chunk);
"""


def _create_pack(connection: Connection) -> None:
    """Create the tables.

    `source` is the checksum of a part in the runtime's file, `stamp` the whole file's at the time
    of reading ('' if there is more to read)."""
    connection.execute(_TABLES)


class ChangedFileError(SessionMemoryError):
    """A file changed while it was read. It is read again the next time."""


class KeptSession(NamedTuple):
    """A kept session.

    `home` is its group. `modified`, `kept_at` and `gone_at` are in milliseconds since 1970.
    `gone_at` is when the runtime was first seen without the session, None while it has it.
    `is_earlier` means that this version was longer than its later replacement in the runtime."""

    id: int
    home: str
    runtime: str
    config_dir: str
    session_id: str
    form: str
    cwd: str
    title: str
    modified: int
    kept_at: int
    gone_at: int | None
    is_earlier: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return the key that distinguishes this session from all others of the runtime."""
        return self.home, self.runtime, self.config_dir, self.session_id


class KeptFile(NamedTuple):
    """A file of a kept session.

    It has the path below the runtime's directory, the size in bytes, and the time in nanoseconds.
    """

    id: int
    path: str
    stamp: str
    size: int
    modified: int


class Gap(NamedTuple):
    """A damaged part of a kept file.

    It has the file's path below the runtime's directory, and the bytes from `start` to `end`."""

    path: str
    start: int
    end: int


class _Part(NamedTuple):
    chunk: int
    size: int
    source: bytes


class Pack(sqlite.Database):
    """The pack at `path`, created if missing.

    A corrupt pack is moved away and replaced by a new one: `quarantined` is then its new path, else
    ''. Methods raise DatabaseError."""

    def __init__(self, path: str) -> None:
        self.quarantined = ""
        try:
            super().__init__(path, (_create_pack,))
            self._check()
        except sqlite.CorruptDatabaseError as error:
            from ...common.system.sqlite_reads import is_damaged

            if not is_damaged(path, (_create_pack,)):
                raise sqlite.DatabaseError(
                    f"{error}; but a check found no damage", "try again"
                ) from error
            self.quarantined = sqlite.quarantine(path)
            super().__init__(path, (_create_pack,))
        self.connection.execute("PRAGMA secure_delete = on")

    def _check(self) -> None:
        with sqlite.explained(self.path):
            try:
                sqlite.fetch(self.connection, f"SELECT {_COLUMNS} FROM kept_sessions LIMIT 1")
            except BaseException:
                self.close()
                raise

    def size(self) -> int:
        """Return the pack's bytes on the disk, without free pages."""
        with sqlite.explained(self.path):
            pages = self.connection.pragma("page_count") - self.connection.pragma("freelist_count")
            return int(pages * self.connection.pragma("page_size"))

    def sessions(self) -> list[KeptSession]:
        """Return the kept sessions, the latest first."""
        with sqlite.explained(self.path):
            rows = sqlite.fetch(
                self.connection, f"SELECT {_COLUMNS} FROM kept_sessions ORDER BY modified DESC"
            )
            return [KeptSession._make(row) for row in rows]

    def files(self, session: int) -> list[KeptFile]:
        """Return the files of a session, its transcript first."""
        with sqlite.explained(self.path):
            sql = (
                "SELECT id, path, stamp, size, modified FROM kept_files WHERE "
                "session = ? ORDER BY id"
            )
            return [KeptFile._make(row) for row in sqlite.fetch(self.connection, sql, (session,))]

    def content(
        self, session: KeptSession, file: KeptFile, gaps: list[Gap] | None = None
    ) -> Iterator[bytes]:
        """Yield the kept content of a file, in chunks.

        Damaged chunks are left out and added to `gaps`, if given. Raises DamagedChunkError,
        NoLibraryError."""
        sql = (
            "SELECT how, content, checksum, is_masked, kept_parts.size FROM kept_parts "
            "LEFT JOIN kept_chunks ON id = chunk WHERE file = ? ORDER BY number"
        )
        at = 0
        with sqlite.explained(self.path):
            for how, content, sum, is_masked, size in self.connection.execute(sql, (file.id,)):
                try:
                    if content is None:
                        raise DamagedChunkError("damaged: part of it is missing")
                    chunk = unpacked(how, content, sum)
                except DamagedChunkError:
                    if gaps is None:
                        raise
                    gaps.append(Gap(file.path, at, at + size))
                else:
                    yield unmasked(chunk, session.session_id.encode()) if is_masked else chunk
                at += size

    # What changes it

    def begin(self, session: KeptSession) -> KeptSession:
        """Return the kept form of the session, created if missing. Call this in a `transaction`."""
        names = _COLUMNS.split(", ")[1:]
        marks = ", ".join("?" * len(names))
        self.connection.execute(
            f"INSERT INTO kept_sessions ({', '.join(names)}) VALUES ({marks}) "
            "ON CONFLICT (home, runtime, config_dir, session_id) WHERE NOT "
            "is_earlier DO UPDATE SET "
            "cwd = excluded.cwd, title = excluded.title, modified = excluded.modified, kept_at = "
            "excluded.kept_at, "
            "gone_at = NULL",
            session[1:],
        )
        sql = (
            f"SELECT {_COLUMNS} FROM kept_sessions WHERE (home, runtime, config_dir, "
            f"session_id) = (?, ?, ?, ?)"
        )
        return KeptSession._make(
            sqlite.fetch(self.connection, f"{sql} AND NOT is_earlier", session.key)[0]
        )

    def keep_file(self, session: KeptSession, file: SessionFile, descriptor: int) -> bool:
        """Keep at most STEP_BYTES of new content of a file; return whether that is all of it.

        Call this in a `transaction`. Raises LineTooLongError, ChangedFileError, OSError."""
        own_id = session.session_id.encode()
        size = os.fstat(descriptor).st_size
        is_lines = file.path.endswith(".jsonl")
        if session.form == REDACTED and is_lines:
            size = last_line_end(descriptor, 0, size, size) or 0
        sql = "SELECT id FROM kept_files WHERE (session, path) = (?, ?)"
        known = sqlite.fetch(self.connection, sql, (session.id, file.path))
        if not known:
            sql = (
                "INSERT INTO kept_files (session, path, stamp, size, modified) VALUES (?, ?, "
                "'', 0, 0) RETURNING id"
            )
            known = sqlite.fetch(self.connection, sql, (session.id, file.path))
        ((file_id,),) = known
        parts = self._parts(file_id)
        number = _unchanged(parts, descriptor, size)
        start = at = sum(part.size for part in parts[:number])
        replaced = [part.chunk for part in parts[number:]]
        self.connection.execute(
            "DELETE FROM kept_parts WHERE file = ? AND number >= ?", (file_id, number)
        )
        for chunk in chunks_of(descriptor, start, size, own_id, is_cut=session.form == WHOLE):
            content, is_masked = masked(
                chunk if session.form == WHOLE else redacted(chunk, file.path), own_id
            )
            row = (file_id, number, self._chunk(content), len(chunk), checksum(chunk), is_masked)
            self.connection.execute("INSERT INTO kept_parts VALUES (?, ?, ?, ?, ?, ?)", row)
            at, number = at + len(chunk), number + 1
            if at - start >= STEP_BYTES:
                break
        else:
            if at < size:
                raise ChangedFileError("it became shorter while it was read")
        self.connection.execute(
            "UPDATE kept_files SET stamp = ?, size = ?, modified = ? WHERE id = ?",
            (encode(file.stamp) if at == size else "", at, file.stamp[2], file_id),
        )
        self._drop_chunks(replaced)
        return at == size

    def _parts(self, file_id: int) -> list[_Part]:
        sql = "SELECT chunk, size, source FROM kept_parts WHERE file = ? ORDER BY number"
        return [_Part._make(row) for row in sqlite.fetch(self.connection, sql, (file_id,))]

    def _chunk(self, content: bytes) -> int:
        """Return the id of a chunk, stored if it is not."""
        sum = checksum(content)
        known = sqlite.fetch(
            self.connection, "SELECT id FROM kept_chunks WHERE checksum = ?", (sum,)
        )
        if not known:
            sql = (
                "INSERT INTO kept_chunks (checksum, size, how, content) VALUES (?, ?, ?, ?) "
                "RETURNING id"
            )
            known = sqlite.fetch(self.connection, sql, (sum, len(content), *packed(content)))
        return int(known[0][0])

    def is_continued(self, file: KeptFile, descriptor: int) -> bool:
        """Check if a runtime's file begins with all of its kept content.

        The line of a title that is rewritten in place does not count."""
        parts, size = self._parts(file.id), os.fstat(descriptor).st_size
        title = settled_from(descriptor)
        unchanged = _unchanged(parts, descriptor, size, title)
        return file.size <= size and len(parts) - unchanged <= (file.size < size)

    def set_earlier(self, session: KeptSession) -> None:
        """Keep a session's present copy beside the copy of its replacement in the runtime.

        It replaces an earlier copy of this kind."""
        sql = (
            "SELECT id FROM kept_sessions WHERE (home, runtime, config_dir, session_id) = (?, "
            "?, ?, ?) AND is_earlier"
        )
        self.drop([id for (id,) in sqlite.fetch(self.connection, sql, session.key)])
        self.connection.execute(
            "UPDATE kept_sessions SET is_earlier = 1 WHERE id = ?", (session.id,)
        )

    def set_gone(self, sessions: Iterable[int], now: int) -> None:
        """Note that the runtime no longer has these sessions."""
        with self.transaction() as connection:
            sql = "UPDATE kept_sessions SET gone_at = ? WHERE id = ? AND gone_at IS NULL"
            connection.executemany(sql, [(now, id) for id in sessions])

    def drop(self, sessions: Iterable[int]) -> None:
        """Drop sessions. Call this in a `transaction`, and then `shrink`."""
        for session in sessions:
            for file in self.files(session):
                chunks = [part.chunk for part in self._parts(file.id)]
                self.connection.execute("DELETE FROM kept_parts WHERE file = ?", (file.id,))
                self.connection.execute("DELETE FROM kept_files WHERE id = ?", (file.id,))
                self._drop_chunks(chunks)
            self.connection.execute("DELETE FROM kept_sessions WHERE id = ?", (session,))

    def _drop_chunks(self, chunks: Iterable[int]) -> None:
        sql = (
            "DELETE FROM kept_chunks WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM kept_parts "
            "WHERE chunk = ?1)"
        )
        self.connection.executemany(sql, [(chunk,) for chunk in dict.fromkeys(chunks)])

    def shrink(self) -> None:
        """Free the disk space of dropped content, and delete its bytes from the log."""
        with sqlite.explained(self.path):
            sqlite.give_back(self.connection)
            self.connection.execute("PRAGMA wal_checkpoint(truncate)")

    def damaged(self, seconds: float) -> list[KeptSession]:
        """Return the sessions with an unreadable part, sole copies first.

        Checking takes at most `seconds`. Sessions that the runtime still has are kept anew the next
        time. Raises NoLibraryError."""
        damaged, until = [], time.monotonic() + seconds
        for session in sorted(self.sessions(), key=lambda kept: kept.gone_at is None):
            if time.monotonic() > until:
                break
            for file in self.files(session.id):
                try:
                    for _ in self.content(session, file):
                        pass
                except DamagedChunkError:
                    damaged.append(session)
                    break
        if not self.obstacle:
            with self.transaction():
                self.drop([session.id for session in damaged if session.gone_at is None])
        return damaged


def pack_path(database: str) -> str:
    """Return the path of the pack beside a store."""
    return f"{os.path.dirname(database)}/{PACK_FILE}"


def open_if_there(path: str) -> Pack | None:
    """Return the pack at `path`; None if there is none. Raises DatabaseError."""
    return Pack(path) if os.path.exists(path) else None


def _unchanged(parts: list[_Part], descriptor: int, size: int, title: int = 0) -> int:
    """Return how many parts of a file are unchanged.

    If the file was only appended to, these are all parts except the last, which may have grown. If
    there are many parts, only those at both ends are compared. A part that ends at `title` counts
    as unchanged."""
    at = 0
    for number, part in enumerate(parts):
        is_checked = number < _CHECKED or number >= len(parts) - _CHECKED
        is_checked = is_checked and at + part.size != title
        if at + part.size > size or (
            is_checked and checksum(read_at(descriptor, at, at + part.size)) != part.source
        ):
            return number if number <= _CHECKED else 0
        at += part.size
    return len(parts) - 1 if parts and at < size else len(parts)
