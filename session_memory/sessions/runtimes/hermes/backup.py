"""The sessions in Hermes's database, kept as lines of rows.

Measured with 0.19.0: only the web page of Hermes imports a session, and no command does. Therefore
kept sessions are not put back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._database_backup import SessionRows
from ..backup import Backup, FilesOfSession
from . import RUNTIME
from .database import Error, HermesDatabase


class KeptMessages(SessionRows):
    """A session as lines of JSON: its own row, then each message."""

    READER = HermesDatabase

    def rows(self, reader: HermesDatabase) -> Iterator[dict[str, Any]]:
        yield from reader.kept_rows(self.path.rpartition("/")[2].removesuffix(".jsonl"))


class HermesBackup(Backup):
    """A session is its rows; a sub-agent has its own session, which names its parent."""

    REWRITES = IS_PUT_BACK = True
    CANNOT_PUT_BACK = "Hermes has no command that imports a session"

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for name, path in RUNTIME.databases(config_dir).items():
            try:
                with HermesDatabase(path) as database:
                    sessions = database.sessions_since(0) if database.is_known else []
                    stamps = [database.stamp(session) for session in sessions]
            except Error as error:
                raise OSError(f"{path}: {error}") from error
            for session, stamp in zip(sessions, stamps):
                kept = KeptMessages(f"{name}/{session.id}.jsonl", path, stamp)
                yield FilesOfSession(RUNTIME.mirror_id(config_dir, "", session.id, name), [kept])
