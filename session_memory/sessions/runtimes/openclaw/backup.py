"""The sessions in OpenClaw's databases, kept as files of records.

Measured with 2026.9.2: OpenClaw exports no session that it could import. Its `doctor` imports files
of an earlier version, but until then its gateway refuses to start. Therefore kept sessions are not
put back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._database_backup import SessionRows
from ..backup import Backup, FilesOfSession
from . import RUNTIME
from .database import AgentDatabase, Error
from .rows import KEY, WindowRow


class KeptRows(SessionRows):
    """A session as lines of JSON: its records, the first one with its key and its title."""

    READER = AgentDatabase

    def __init__(self, database: str, agent: str, session: WindowRow, stamp: list[int]) -> None:
        super().__init__(f"agents/{agent}/sessions/{session.id}.jsonl", database, stamp)
        self._session = session

    def rows(self, reader: AgentDatabase) -> Iterator[dict[str, Any]]:
        session = self._session
        for seq, record in reader.records(session.id, 0):
            yield {**record, **({KEY: session.key, "label": session.title} if seq == 0 else {})}


class OpenClawBackup(Backup):
    """A session is its rows."""

    REWRITES = IS_PUT_BACK = True
    CANNOT_PUT_BACK = "OpenClaw has no command that imports a session"

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        """Yield the sessions of all agents; a database that cannot be read is raised at the end."""
        unreadable = []
        for agent in RUNTIME.agents(config_dir):
            path = RUNTIME.database(config_dir, agent)
            try:
                with AgentDatabase(path) as database:
                    sessions = database.sessions_since(0) if database.is_known else []
                    ends = [database.next_row(session.id) for session in sessions]
            except Error as error:
                unreadable.append(f"{path}: {error}")
                continue
            for session, end in zip(sessions, ends):
                if end:
                    stamp = [end, 0, session.updated * 1_000_000]
                    file = KeptRows(path, agent, session, stamp)
                    own_id = RUNTIME.mirror_id(config_dir, "", session.id, agent)
                    yield FilesOfSession(own_id, [file])
        if unreadable:
            raise OSError("; ".join(unreadable))
