"""A person who keeps transcripts: what upkeep keeps, and what the runtime deletes."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from own_process import plain_environment
from store_scene import StoreUser

from session_memory.history.copies.keep import KeepReport, keep_sessions
from session_memory.history.copies.pack import KeptSession, Pack
from session_memory.history.store.ingest.intake import take_in
from session_memory.history.store.location import StoreLocation, find_location
from session_memory.history.store.refresh import open_store
from session_memory.history.store.sqlite.engine import SqliteStore

DAY = 86_400


class KeptUser(StoreUser):
    """A person with `keep: whole` in their settings, unless told otherwise."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, keep: str = "whole") -> None:
        super().__init__(home)
        monkeypatch.setenv("HOME", str(home))
        self.pack_file = self.database.with_name("kept.db")
        self.config(f"keep: {keep}\n")

    def keep(self, is_over: bool = False) -> KeepReport:
        """Do what upkeep does: ingest what is new, and keep it."""
        return self.keep_in(*self.ingested(), is_over=is_over)

    def ingested(self) -> tuple[StoreLocation, SqliteStore]:
        """Ingest what is new; return the store, open."""
        location = find_location(str(self.home), plain_environment(self.home))
        store = open_store(location)
        take_in(store, location)
        return location, store

    def keep_in(
        self, location: StoreLocation, store: SqliteStore, *, is_over: bool = False
    ) -> KeepReport:
        """Keep what is new, and close the store."""
        try:
            return keep_sessions(store, location, lambda: is_over)
        finally:
            store.close()

    def kept(self) -> dict[str, dict[str, bytes]]:
        """The kept sessions by id, each with its files by path."""
        with closing(Pack(str(self.pack_file))) as pack:
            return {
                one.session_id: contents(pack, one) for one in pack.sessions() if not one.is_earlier
            }

    def sessions(self) -> list[KeptSession]:
        """The kept sessions, earlier ones too."""
        with closing(Pack(str(self.pack_file))) as pack:
            return pack.sessions()

    def amounts(self) -> tuple[int, int]:
        """How many chunks the pack has, and how many parts of files they stand for."""
        with closing(Pack(str(self.pack_file))) as pack:
            sql = "SELECT (SELECT count(*) FROM kept_chunks), (SELECT count(*) FROM kept_parts)"
            ((chunks, parts),) = pack.connection.execute(sql)
            return chunks, parts

    def talk(
        self, name: str, *records: dict[str, Any], days: float = 0.0, project: str = "-srv-agent"
    ) -> Path:
        """A transcript that was last written so many days ago."""
        path = self.session(name, *records, project=project)
        age(path, days)
        return path


def contents(pack: Pack, session: KeptSession) -> dict[str, bytes]:
    return {file.path: b"".join(pack.content(session, file)) for file in pack.files(session.id)}


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def delete(path: Path) -> None:
    """Delete a transcript of Claude Code as its cleanup does."""
    path.unlink()
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
