"""The sessions in OpenCode's database, kept in its export format and restored by its import.

Measured with 1.18.33: an export has the rows of the tables `session`, `message` and `part`. An
import assigns a session to the directory in which it runs, and adds to an existing session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from ....common.errors import SessionMemoryError
from ....common.system.files import is_directory, is_file
from ...settings.homes import ENV_GUARD
from ..backup import Backup, FilesOfSession, SessionFile
from . import OpenCode
from .database import DatabaseReader, Error

TIMEOUT_SECONDS = 300
_PARENT_KEY = b'"parentID":"'
_TOKENS = ("input", "output", "reasoning")
_SUMMARY = ("additions", "deletions", "files")
_OF_INFO = {  # an export's names by the columns' names; some columns have JSON
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "parent_id": "parentID",
    "directory": "directory",
    "path": "path",
    "title": "title",
    "agent": "agent",
    "model": "model",
    "version": "version",
    "cost": "cost",
    "permission": "permission",
    "revert": "revert",
    "metadata": "metadata",
}
_JSON = ("model", "permission", "revert", "metadata")


class NotImportedError(SessionMemoryError):
    """The runtime did not import a session."""


class ExportedSession(SessionFile):
    """A session as lines of JSON: the export's header, then each message with its parts."""

    def __init__(self, database: str, session_id: str, stamp: list[int]) -> None:
        self.path = f"{os.path.basename(database)}/{session_id}.jsonl"
        self.source = database
        self.stamp = stamp
        self._session_id = session_id

    def open(self, confined_to: str = "") -> int:
        try:
            with DatabaseReader(self.source) as reader, tempfile.TemporaryFile() as file:
                reader.begin()
                for line in _lines(reader, self._session_id):
                    file.write(
                        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode(
                            "utf-8", "replace"
                        )
                    )
                    file.write(b"\n")
                reader.end()
                file.flush()
                return os.dup(file.fileno())
        except Error as error:
            raise OSError(f"{self.source}: {error}") from error


class OpenCodeBackup(Backup):
    """The rows with a session's id; a sub-agent has its own session, which names its parent."""

    REWRITES = IS_PUT_BACK = HAS_SUB_AGENT_SESSIONS = True
    runtime: OpenCode

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        database = self.runtime.source(config_dir)
        if not is_file(database):
            return
        try:
            with DatabaseReader(database) as reader:
                stamps = reader.session_stamps()
        except Error as error:
            raise OSError(f"{database}: {error}") from error
        for session_id, stamp in stamps:
            yield FilesOfSession(session_id, [ExportedSession(database, session_id, stamp)])

    def parent_in(self, head: bytes) -> str:
        return (
            head.partition(b"\n")[0]
            .partition(_PARENT_KEY)[2]
            .partition(b'"')[0]
            .decode("utf-8", "replace")
        )

    def put_back(
        self, config_dir: str, session_id: str, cwd: str, content: bytes, environ: Mapping[str, str]
    ) -> None:
        command = self.runtime.install.COMMAND or self.runtime.PROGRAM
        program = shutil.which(command, path=environ.get("PATH"))
        if program is None:
            raise NotImportedError(
                f"{command} is not installed here, and only {command} can restore its session"
            )
        if not is_directory(cwd):
            raise NotImportedError(
                f"{cwd}: the session's directory is gone",
                "create it, then restore the session again",
            )
        database = self.runtime.source(config_dir)
        if _has(database, session_id):
            raise NotImportedError(
                f"{self.runtime.TITLE} has that session", self.resume_command(session_id, cwd)
            )
        info, *messages = [json.loads(line) for line in content.splitlines()]
        environment = {
            **environ,
            ENV_GUARD: "1",
            self.runtime.CONFIG_VARIABLE: os.path.dirname(config_dir),
        }
        with tempfile.TemporaryDirectory() as folder:  # readable only for this user
            path = f"{folder}/{session_id}.json"
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"info": info, "messages": messages}, file)
            output = _output_of([program, "import", path], cwd, environment)
        if not _has(database, session_id):
            last_line = (output.strip().splitlines() or ["it said nothing"])[-1]
            raise NotImportedError(f"{command} import failed: {last_line}")


def _output_of(command: list[str], cwd: str, environ: Mapping[str, str]) -> str:
    """Return the output of the program's import. Raises NotImportedError if it does not end."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise NotImportedError(
            f"{os.path.basename(command[0])} import did not finish within {TIMEOUT_SECONDS} s"
        ) from error
    return done.stdout.decode("utf-8", "replace")


def _has(database: str, session_id: str) -> bool:
    if not is_file(database):
        return False
    try:
        with DatabaseReader(database) as reader:
            return reader.session(session_id) is not None
    except Error as error:
        raise NotImportedError(f"{database}: {error}") from error


def _lines(reader: DatabaseReader, session_id: str) -> Iterator[dict[str, Any]]:
    for row in reader.rows("session", "id", session_id):
        yield _info(row)
    for row in reader.rows("message", "session_id", session_id):
        info = {**json.loads(row["data"]), "id": row["id"], "sessionID": session_id}
        parts = [
            {
                **json.loads(part["data"]),
                "id": part["id"],
                "sessionID": session_id,
                "messageID": row["id"],
            }
            for part in reader.rows("part", "message_id", row["id"])
        ]
        yield {"info": info, "parts": parts}


def _info(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an export's header for the session in a row of any version."""
    info = {
        name: json.loads(row[column]) if column in _JSON else row[column]
        for column, name in _OF_INFO.items()
        if row.get(column) is not None
    }
    if row.get("summary_files") is not None:
        info["summary"] = {name: row.get(f"summary_{name}") or 0 for name in _SUMMARY}
        if row.get("summary_diffs"):
            info["summary"]["diffs"] = json.loads(row["summary_diffs"])
    if "tokens_input" in row:
        cache = {name: row.get(f"tokens_cache_{name}") or 0 for name in ("read", "write")}
        info["tokens"] = {
            **{name: row.get(f"tokens_{name}") or 0 for name in _TOKENS},
            "cache": cache,
        }
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    times = {
        name: row.get(f"time_{name}") for name in ("created", "updated", "compacting", "archived")
    }
    info["time"] = {name: time for name, time in times.items() if time is not None}
    return info
