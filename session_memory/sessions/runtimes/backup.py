"""The base classes for backups of a runtime's sessions.

They state which files a session has, when the runtime deletes them, and how to put them back for
the session to resume.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import SessionMemoryError
from ...common.system.files import open_regular, path_stamp
from ..confined_files import open_inside

if TYPE_CHECKING:
    from .base import Runtime

DAY_SECONDS = 86_400.0


class SessionFile:
    """A file of a session: `path` below the runtime's directory, `source` path, `stamp`."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.stamp = path_stamp(source)

    def open(self, confined_to: str = "") -> int:
        """Return a descriptor; follow no symlink below `confined_to`.

        Raises OSError, SessionMemoryError."""
        return open_inside(confined_to, self.source) if confined_to else open_regular(self.source)


class FilesOfSession(NamedTuple):
    """A session as its runtime has it; the transcript is the first of its files."""

    session_id: str
    files: list[SessionFile]


class Deletion(NamedTuple):
    """The time after which a runtime itself deletes sessions.

    `days` is None for never. `source` is the file with the setting, '' for the default. `shortest`
    is the shortest time in any project's settings. `traps` are settings with an unexpected effect,
    a line each."""

    days: float | None
    source: str = ""
    traps: tuple[str, ...] = ()
    shortest: float | None = None


class Backup:
    """The sessions of `runtime`.

    By default a session is a transcript and the folder beside it, and is never deleted."""

    # whether the runtime stores sessions in files that it changes anywhere, such as a database
    REWRITES = False
    # whether a program of the runtime imports a session (`put_back`) instead of us writing a file
    IS_PUT_BACK = False
    CANNOT_PUT_BACK = ""  # why the runtime can get no session back; '' if it can
    # whether a sub-agent has its own session, which names its parent (`parent_in`)
    HAS_SUB_AGENT_SESSIONS = False

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for path in self.transcripts(config_dir):
            files = [
                SessionFile(os.path.relpath(file, config_dir), file)
                for file in (path, *self.files_beside(path))
            ]
            yield FilesOfSession(self.runtime.session_id_of(path), files)

    def transcripts(self, config_dir: str) -> Iterator[str]:
        for folder in self.runtime.all_folders(config_dir):
            for session in self.runtime.sessions_in(folder):
                yield session.path

    def files_beside(self, path: str) -> Iterable[str]:
        """Return the other files of the session whose transcript is at `path`."""
        return files_below(self.runtime.folder_beside(path))

    def parent_in(self, head: bytes) -> str:
        """Return the parent's session id from the `head` of a sub-agent's transcript, else ''."""
        return ""

    # When the runtime deletes sessions

    def deletion(self, config_dir: str, directories: Iterable[str]) -> Deletion:
        """Return when the runtime deletes sessions that were started in `directories`."""
        return Deletion(None)

    @property
    def is_used_when_written(self) -> bool:
        """Check if `last_used` is the time of a transcript's last change."""
        return type(self).last_used is Backup.last_used

    def last_used(self, path: str) -> float:
        """Return the time from which the runtime counts a transcript's age, in seconds since 1970.

        Raises OSError."""
        return os.stat(path).st_mtime

    # How a session is put back

    def ending(self, path: str, seconds: float) -> bytes:
        """Return the bytes to append to a restored file so its session counts as used then."""
        return b""

    def put_back(
        self, config_dir: str, session_id: str, cwd: str, content: bytes, environ: Mapping[str, str]
    ) -> None:
        """Put back a session by a program of the runtime. Raises SessionMemoryError."""
        raise SessionMemoryError(
            self.CANNOT_PUT_BACK,
            f"session-memory read {session_id} prints it, and session-memory handoff {session_id} "
            f"continues it elsewhere",
        )

    def resume_command(self, session_id: str, cwd: str, directory: str = "") -> str:
        """Return the command that resumes the session in a terminal.

        `directory` is the value of CONFIG_VARIABLE, if it is set for the session."""
        command = self.runtime.install.RESUME.format(id=shlex.quote(session_id))
        if directory:
            command = f"{self.runtime.CONFIG_VARIABLE}={shlex.quote(directory)} {command}"
        return f"cd {shlex.quote(cwd)} && {command}" if cwd else command


def files_below(directory: str) -> list[str]:
    """Return the paths of all files below a directory, in order. Follow no link."""
    files: list[str] = []
    if os.path.islink(directory):
        return files
    for folder, folders, names in os.walk(directory):
        folders.sort()
        paths = [f"{folder}/{name}" for name in sorted(names)]
        files += [path for path in paths if not os.path.islink(path) and os.path.isfile(path)]
    return files
