"""The base classes of what a copy of a session needs to know: its files, when the runtime deletes
them, and how they are put back so that the session resumes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...common.system.files import open_regular, path_stamp
from ..confined_files import open_inside

if TYPE_CHECKING:
    from ._base import Runtime

DAY_SECONDS = 86_400.0


class SessionFile:
    """A file of a session: its `path` below the runtime's directory, `source` where it lies, its
    `stamp`."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.stamp = path_stamp(source)

    def open(self, confined_to: str = "") -> int:
        """Return a descriptor; below `confined_to`, no symlink is followed. Raises OSError,
        SessionMemoryError."""
        return open_inside(confined_to, self.source) if confined_to else open_regular(self.source)


class FilesOfSession(NamedTuple):
    """A session as its runtime has it; the transcript is the first of its files."""

    session_id: str
    files: list[SessionFile]


class Deletion(NamedTuple):
    """The time after which a runtime deletes sessions by itself: `days`, by a setting in `source`
    ('' for its default), None for never; some project's settings make that the `shortest`. `traps`
    are settings with an effect that nobody expects, a line each."""

    days: float | None
    source: str = ""
    traps: tuple[str, ...] = ()
    shortest: float | None = None


class Backup:
    """The sessions of `runtime`: by default a transcript and all in the folder beside it, never
    deleted."""

    # whether a session is read from what the runtime changes at any place, such as a database
    REWRITES = False
    # whether a program of the runtime takes a session back (`put_back`), and no file is written
    IS_PUT_BACK = False
    # whether a sub-agent has a session of its own, which names its parent (`parent_in`)
    HAS_SUB_AGENT_SESSIONS = False

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def sessions(self, config_dir: str) -> Iterator[FilesOfSession]:
        for path in self.transcripts(config_dir):
            files = [
                SessionFile(os.path.relpath(one, config_dir), one)
                for one in (path, *self.files_beside(path))
            ]
            yield FilesOfSession(self.runtime.session_id_of(path), files)

    def transcripts(self, config_dir: str) -> Iterator[str]:
        for folder in self.runtime.all_folders(config_dir):
            for session in self.runtime.sessions_in(folder):
                yield session.path

    def files_beside(self, path: str) -> Iterable[str]:
        """Return the other files of the session whose transcript lies at `path`."""
        return files_below(self.runtime.folder_beside(path))

    def parent_in(self, head: bytes) -> str:
        """Return the id of the session whose sub-agent's transcript begins with `head`; '' if it is
        none."""
        return ""

    # When the runtime deletes sessions

    def deletion(self, config_dir: str, directories: Iterable[str]) -> Deletion:
        """Return when the runtime deletes sessions; `directories` are those that sessions were
        started in."""
        return Deletion(None)

    def last_used(self, path: str) -> float:
        """Return the time by which the runtime deletes a transcript, in seconds since 1970. Raises
        OSError."""
        return os.stat(path).st_mtime

    # How a session is put back

    def ending(self, path: str, seconds: float) -> bytes:
        """Return what has to stand at the end of a restored file for the session to count as used
        at that time."""
        return b""

    def put_back(
        self, config_dir: str, session_id: str, cwd: str, content: bytes, environ: Mapping[str, str]
    ) -> None:
        """Put back a session by a program of the runtime. Raises SessionMemoryError."""
        raise NotImplementedError

    def resume_command(self, session_id: str, cwd: str, directory: str = "") -> str:
        """Return what a user types in a terminal to go on with the session; `directory` is the
        value of CONFIG_VARIABLE, if that is set for it."""
        command = self.runtime.install.RESUME.format(id=shlex.quote(session_id))
        if directory:
            command = f"{self.runtime.CONFIG_VARIABLE}={shlex.quote(directory)} {command}"
        return f"cd {shlex.quote(cwd)} && {command}" if cwd else command


def files_below(directory: str) -> list[str]:
    found: list[str] = []
    if os.path.islink(directory):
        return found
    for folder, folders, names in os.walk(directory):
        folders.sort()
        paths = [f"{folder}/{name}" for name in sorted(names)]
        found += [path for path in paths if not os.path.islink(path) and os.path.isfile(path)]
    return found
