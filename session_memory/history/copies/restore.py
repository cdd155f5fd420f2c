"""Restores a kept session to where its runtime looks for it, without overwriting anything.

The transcript comes last: until then, the runtime has no such session, and the next run completes
the work of a killed process. A file gets its name only once it is complete.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from ...common.errors import SessionMemoryError
from ...common.system.files import make_private_dir
from ...sessions.confined_files import OutsideGroupError
from ...sessions.runtimes.backup import DAY_SECONDS
from ...sessions.runtimes.base import Runtime
from .chunks import DamagedChunkError
from .pack import Gap, KeptFile, KeptSession, Pack

_TEMPORARY = ".restoring"
_BLOCK_BYTES = 1024 * 1024
# A restored session counts as unused for at most this share of the time before its deletion.
_LAST_SHARE = 0.9
_SHARE = 1 / 3  # and usually
_NANOSECONDS = 1_000_000_000


class StillThereError(SessionMemoryError):
    """The runtime still has the session that is to be restored."""


class RestorePlace(NamedTuple):
    """A runtime's directory into which sessions are restored.

    The runtime deletes sessions after `days` without use (None: never). `present` returns the
    current path of a directory that may have moved."""

    config_dir: str
    days: float | None
    present: Callable[[str], str]

    def path_of(self, file: KeptFile, cwd: str, runtime: Runtime) -> str:
        """Return the path for a file of a session that started in `cwd` or above.

        It is in the runtime's folder for the current path of that directory."""
        path = f"{self.config_dir}/{file.path}"
        while (present := self.present(cwd)) != cwd:
            folder = runtime.project_dir(self.config_dir, cwd)
            if path.startswith(f"{folder}/"):
                return runtime.project_dir(self.config_dir, present) + path[len(folder) :]
            cwd = os.path.dirname(cwd)
        return path


class Restored(NamedTuple):
    """The result of restoring a session.

    It has the written files, the existing files with other content, which are left alone, and the
    damaged parts that the written files lack."""

    written: list[str]
    others: list[str]
    gaps: list[Gap]


def restore(
    pack: Pack,
    session: KeptSession,
    runtime: Runtime,
    place: RestorePlace,
    environ: Mapping[str, str],
) -> Restored:
    """Restore a session and its sub-agents.

    A damaged transcript is restored without its damaged lines. Raises StillThereError,
    DamagedChunkError, SessionMemoryError, OSError."""
    config_dir = place.config_dir
    _check_not_there(session, runtime, place)
    done = Restored([], [], [])
    for part in (*_sub_agents(pack, session, runtime), session):
        files = pack.files(part.id)
        for file in files:  # before anything is written
            done.gaps.extend(_gaps(pack, part, file, runtime))
        main, *beside = files
        if runtime.backup.IS_PUT_BACK:
            content, cwd = b"".join(pack.content(part, main)), place.present(part.cwd)
            runtime.backup.put_back(config_dir, part.session_id, cwd, content, environ)
            done.written.append(f"{config_dir}/{main.path}")
            continue
        for file in (*beside, main):
            path = place.path_of(file, part.cwd, runtime)
            if part.home:
                _check_no_links(config_dir, path)
            seconds = _spared_time(
                file.modified / _NANOSECONDS,
                place.days,
                _newest_beside(runtime, path),
                time.time(),
            )
            if _put(
                path,
                lambda part=part, file=file: pack.content(part, file, []),  # type: ignore[misc]
                runtime,
                seconds,
                file,
            ):
                done.written.append(path)
            else:
                done.others.append(path)
    return done


def _check_not_there(session: KeptSession, runtime: Runtime, place: RestorePlace) -> None:
    """Raise StillThereError if the runtime has a session."""
    for present_session in runtime.backup.sessions(place.config_dir):
        if present_session.session_id == session.session_id and os.path.lexists(
            present_session.files[0].source
        ):
            present = place.present(session.cwd)
            cwd = present if present != session.cwd else ""
            raise StillThereError(
                f"{runtime.TITLE} still has it",
                runtime.backup.resume_command(session.session_id, cwd),
            )


def _spared_time(last: float, days: float | None, newest: float | None, now: float) -> float:
    """Return the time of last use to give a restored session, which was really `last`.

    The times are in seconds since 1970. The result is late enough for the next cleanups to spare
    the session, but before the `newest` session beside it, which the runtime would continue."""
    if days is None or last > now - days * DAY_SECONDS * _SHARE:
        return last
    wanted = now - days * DAY_SECONDS * _SHARE
    if newest is not None:
        wanted = min(wanted, newest - 1)
    return max(wanted, now - days * DAY_SECONDS * _LAST_SHARE)


def _sub_agents(pack: Pack, session: KeptSession, runtime: Runtime) -> Iterator[KeptSession]:
    """Yield the session's deleted sub-agent sessions."""
    if not runtime.backup.HAS_SUB_AGENT_SESSIONS:
        return
    for candidate in pack.sessions():
        is_near = (candidate.home, candidate.runtime, candidate.config_dir) == (
            session.home,
            session.runtime,
            session.config_dir,
        )
        if (
            is_near
            and candidate.gone_at is not None
            and not candidate.is_earlier
            and candidate.id != session.id
        ):
            for file in pack.files(candidate.id)[:1]:
                head = next(pack.content(candidate, file), b"")
                if runtime.backup.parent_in(head) == session.session_id:
                    yield candidate


def _newest_beside(runtime: Runtime, path: str) -> float | None:
    """Return when the latest transcript in the same folder was last used."""
    folder, times = os.path.dirname(path), []
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.endswith((".jsonl", ".json")) and not name.startswith("."):
                with suppress(OSError):
                    times.append(runtime.backup.last_used(f"{folder}/{name}"))
    return max(times, default=None)


def _check_no_links(config_dir: str, path: str) -> None:
    """Raise OutsideGroupError if a symlink leads out of a group's directory.

    The group's agent may have put it there."""
    real, folder = os.path.realpath(config_dir), os.path.dirname(path)
    if os.path.realpath(folder) != os.path.normpath(real + folder.removeprefix(config_dir)):
        raise OutsideGroupError(
            f"{folder}: a symlink is on the way", "put a directory in its place"
        )


def _put(
    path: str,
    content: Callable[[], Iterator[bytes]],
    runtime: Runtime,
    seconds: float,
    file: KeptFile,
) -> bool:
    """Write a missing file; return False if a file with other content exists. Raises OSError."""
    folder, name = os.path.split(path)
    temporary = f"{folder}/.{name}{_TEMPORARY}"
    _remove_unfinished(path, temporary)
    if os.path.lexists(path):
        return _is_same(path, content)
    make_private_dir(folder)
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # of a process that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as written:
            for block in content():
                written.write(block)
            written.write(runtime.backup.ending(path, seconds))
            written.flush()
            os.fsync(written.fileno())
        os.utime(temporary, (seconds, seconds))
        _link(temporary, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return True


def _gaps(pack: Pack, session: KeptSession, file: KeptFile, runtime: Runtime) -> list[Gap]:
    """Return the damaged parts of a file of lines.

    Raises DamagedChunkError for any other file with a damaged part."""
    gaps: list[Gap] = []
    readable = sum(map(len, pack.content(session, file, gaps)))
    if gaps and (not readable or runtime.backup.IS_PUT_BACK or not file.path.endswith(".jsonl")):
        part = f"bytes {gaps[0].start:,} to {gaps[0].end:,}"
        hint = (
            "nothing was restored, because part of this kind of file is useless; session-memory read "
            "prints the text"
        )
        raise DamagedChunkError(f"{file.path} of {session.session_id} is damaged: {part}", hint)
    return gaps


def _link(temporary: str, path: str) -> None:
    """Give a finished file its name.

    Raises FileExistsError if a file has that name meanwhile, OSError."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # FAT and some FUSE file systems have no hard links
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with (
            open(temporary, "rb") as finished,
            os.fdopen(os.open(path, flags, 0o600), "wb") as written,
        ):
            shutil.copyfileobj(finished, written)
            written.flush()
            os.fsync(written.fileno())
        shutil.copystat(temporary, path)


def _remove_unfinished(path: str, temporary: str) -> None:
    """Remove a partial file that a killed process left behind."""
    with suppress(OSError):
        if os.path.islink(path) or not 0 <= os.path.getsize(path) < os.path.getsize(temporary):
            return
        with open(path, "rb") as beginning, open(temporary, "rb") as finished:
            while block := beginning.read(_BLOCK_BYTES):
                if finished.read(len(block)) != block:
                    return
        os.unlink(path)


def _is_same(path: str, content: Callable[[], Iterator[bytes]]) -> bool:
    """Check if a file begins with all of `content`, as after an earlier restore."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as there:
        return all(there.read(len(block)) == block for block in content())
