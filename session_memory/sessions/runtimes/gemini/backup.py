"""The files of Gemini's sessions, and its retention.

Gemini deletes chats 30 days after their last `lastUpdated`. Measured with 0.61.0: at each start,
the dates in a chat decide, not the file's time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator

from ....common.system.files import names_in, read_end
from ....common.system.json import as_object
from ....common.text.timestamps import epoch_seconds, iso_time
from ..backup import Backup, Deletion, FilesOfSession, SessionFile, files_below
from ..install import values_in
from . import CHATS

DAYS = 30.0
_HEAD_BYTES, _END_BYTES = 4096, 256 * 1024
_ID = re.compile(rb'"sessionId":\s*"([A-Za-z0-9._-]{1,64})"')
_UPDATED = re.compile(rb'"lastUpdated":\s*"([^"]{10,40})"')
_AGE = re.compile(r"(\d+)([hdwm])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30}


class GeminiBackup(Backup):
    """A session is all files `chats/session-*` that have its id, and all in `chats/<id>/`."""

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for project in sorted(names_in(f"{config_dir}/tmp")):
            chats = f"{config_dir}/tmp/{project}/{CHATS}"
            by_id: dict[str, list[str]] = {}
            for name in sorted(names_in(chats)):
                if name.startswith("session-") and name.endswith((".json", ".jsonl")):
                    match = _ID.search(_head(f"{chats}/{name}"))
                    by_id.setdefault(match[1].decode() if match else "", []).append(
                        f"{chats}/{name}"
                    )
            for session_id, paths in by_id.items():
                if session_id:
                    every = [*paths, *files_below(f"{chats}/{session_id}")]
                    files = [SessionFile(os.path.relpath(file, config_dir), file) for file in every]
                    yield FilesOfSession(session_id, files)

    def transcripts(self, config_dir: str) -> Iterator[str]:
        for session in self.sessions(config_dir):
            yield session.files[0].source

    def deletion(self, config_dir: str, directories: Iterable[str]) -> Deletion:
        path = f"{config_dir}/settings.json"
        retention = as_object(
            as_object(values_in(path, has_comments=True).get("general")).get("sessionRetention")
        )
        if retention.get("enabled") is False:
            return Deletion(None, path)
        age = _AGE.fullmatch(str(retention.get("maxAge", "")))
        return Deletion(int(age[1]) * _DAYS[age[2]], path) if age else Deletion(DAYS)

    def last_used(self, path: str) -> float:
        update_times = _UPDATED.findall(read_end(path, _END_BYTES)) or _UPDATED.findall(_head(path))
        seconds = epoch_seconds(update_times[-1].decode()) if update_times else None
        return os.stat(path).st_mtime if seconds is None else seconds

    def ending(self, path: str, seconds: float) -> bytes:
        if not path.rpartition("/")[0].endswith(f"/{CHATS}") or not path.endswith(".jsonl"):
            return b""
        return (
            json.dumps({"$set": {"lastUpdated": iso_time(seconds)}}, separators=(",", ":")).encode()
            + b"\n"
        )


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""
