"""`session-memory restore`: gives a deleted session back to its runtime.

Without a name, it lists the sessions that can be restored.
"""

from __future__ import annotations

import argparse
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError
from ...common.system.files import expanded
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted
from ...common.text.sanitize import name_for_people
from ...history.copies.pack import REDACTED, KeptSession, open_if_there, pack_path
from ...history.copies.restore import RestorePlace, restore
from ...history.store.location import StoreLocation, find_location
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.runtimes.table import all_runtimes
from ...sessions.transcripts.earlier_paths import note_repositories, present_directory
from .arguments import OnlyForPeopleError, add_common
from .output import brief, iso, moment

if TYPE_CHECKING:
    from ...history.copies.pack import Pack
    from ...history.copies.restore import Restored

SUMMARY = "bring back a session that its runtime has deleted"
TITLE_CHARACTERS = 60
SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        default="",
        help="its id, the beginning of it, or its title; without one: list all",
    )
    parser.add_argument(
        "--to",
        metavar="DIR",
        default="",
        help="restore into this directory instead of the runtime's own",
    )
    parser.add_argument(
        "--earlier",
        action="store_true",
        help="restore the version from before the transcript became shorter",
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the sessions that can be restored, or restore one.

    Raises SessionMemoryError, OSError."""
    if is_started_by_agent(os.environ):
        raise OnlyForPeopleError("restore")
    terminal = Terminal(os.environ, is_json=arguments.json)
    location = find_location(arguments.home, os.environ)
    pack = open_if_there(pack_path(location.database))
    if pack is None:
        keep = location.home.settings().keep
        hint = (
            "to keep them from now on, with any secrets in them: session-memory config keep whole"
        )
        hint = hint if keep in ("text", "none") else "upkeep keeps them soon"
        if arguments.session:
            raise SessionMemoryError("no transcripts are kept", hint)
        terminal.show(KeptSessions([], hint))
        return 0
    with closing(pack):
        if pack.quarantined:
            hint = (
                "recover it with sqlite3 .recover; upkeep copies the sessions again that the "
                "runtimes still have"
            )
            raise SessionMemoryError(f"{pack.path} was damaged and is now {pack.quarantined}", hint)
        kept = KeptSessions(pack.sessions())
        wanted = arguments.session or _picked(kept, terminal)
        if not wanted:
            return 0
        session = _chosen(kept.sessions, wanted, is_earlier=arguments.earlier)
        done = _restored(pack, session, location, arguments.to)
    terminal.show(done)
    return int(bool(done.files.gaps))


def _picked(kept: KeptSessions, terminal: Terminal) -> str:
    """Show the kept sessions; return the id or the words by which a person at a terminal chooses
    one of the deleted ones, else ''."""
    if not (kept.gone and terminal.can_ask()):
        terminal.show_paged(kept)
        return ""
    terminal.line(kept.summary)
    rows = [_cells(session) for session in kept.gone]
    headings = ("SESSION", "LAST ACTIVE", "RUNTIME", "TITLE")
    chosen = terminal.choose([headings, *rows], "Which one to restore? Enter for none:")
    return kept.gone[chosen].session_id if isinstance(chosen, int) else chosen


def _restored(
    pack: Pack, session: KeptSession, location: StoreLocation, directory: str
) -> RestoredSession:
    """Restore a session into a directory, by default its runtime's.

    Raises SessionMemoryError, OSError."""
    runtime = next(
        known_runtime for known_runtime in all_runtimes() if known_runtime.name == session.runtime
    )
    to = os.path.abspath(expanded(directory, os.environ)) if directory else ""
    config_dir = runtime.config_dir({runtime.CONFIG_VARIABLE: to}) if to else session.config_dir
    deletion = runtime.backup.deletion(config_dir, {kept.cwd for kept in pack.sessions()})
    days = deletion.days if deletion.shortest is None else deletion.shortest
    place = RestorePlace(config_dir, days, partial(present_directory, _notes_file(location)))
    files = restore(pack, session, runtime, place, os.environ)
    cwd = place.present(session.cwd)
    command = runtime.backup.resume_command(
        session.session_id,
        cwd if os.path.isdir(cwd) else "",
        to or _variable(runtime, config_dir),
    )
    return RestoredSession(session, files, command)


@dataclass(frozen=True)
class RestoredSession(Result):
    """A session that was restored, its files, and the command that resumes it."""

    session: KeptSession
    files: Restored
    command: str

    def show(self, terminal: Terminal) -> None:
        files = self.files
        for path in files.others:
            terminal.note(f"{terminal.short(path)}: another file has this name, and was left alone")
        for gap in files.gaps:
            terminal.note(
                f"{gap.path}: bytes {gap.start:,} to {gap.end:,} were damaged, and "
                f"their lines are missing"
            )
        if self.session.form == REDACTED:
            terminal.note(
                "it was kept redacted, so it resumes with [redacted: ...] instead of each secret"
            )
        number, last = counted(len(files.written), "file"), terminal.short(files.written[-1])
        terminal.line(f"Restored: {number}, {last}")
        terminal.line(f"To continue it: {self.command}")

    def as_json(self) -> dict[str, Any]:
        return {
            "session": self.session.session_id,
            "runtime": self.session.runtime,
            "written": self.files.written,
            "others": self.files.others,
            "missing": [gap._asdict() for gap in self.files.gaps],
            "form": self.session.form,
            "resume": self.command,
        }


@dataclass(frozen=True)
class KeptSessions(Result):
    """The kept sessions; without any pack, a hint how to get one."""

    sessions: list[KeptSession]
    hint: str = ""

    @property
    def gone(self) -> list[KeptSession]:
        """The sessions that their runtime has deleted."""
        return [session for session in self.sessions if session.gone_at is not None]

    @property
    def summary(self) -> str:
        return (
            f"{counted(len(self.sessions), 'session')} kept, {len(self.gone)} of them deleted by "
            "the runtime."
        )

    def show(self, terminal: Terminal) -> None:
        if self.hint:
            terminal.line(f"No transcripts are kept; {self.hint}.")
        if self.sessions:
            terminal.line(self.summary)
        for session in self.gone:
            terminal.line(f"  {_line(session)}")

    def as_json(self) -> dict[str, Any]:
        gone = [
            {
                "session": session.session_id,
                "runtime": session.runtime,
                "title": session.title,
                "cwd": session.cwd,
                "form": session.form,
                "modified": iso(session.modified),
                "gone_at": iso(session.gone_at),
            }
            for session in self.gone
        ]
        return {"kept": len(self.sessions), "gone": gone}


def _notes_file(location: StoreLocation) -> str:
    """Return the file with the paths of repositories.

    The repository at the working directory is added, because a project may have moved there."""
    home = location.home
    if home.user_dir:
        with suppress(OSError):
            note_repositories(home.repositories_file, [os.getcwd()], home.user_dir)
    return home.repositories_file


def _line(session: KeptSession) -> str:
    return "  ".join(_cells(session))


def _cells(session: KeptSession) -> tuple[str, str, str, str]:
    id, title = name_for_people(session.session_id), brief(session.title, TITLE_CHARACTERS)
    return id, moment(session.modified), session.runtime, title


def _chosen(sessions: list[KeptSession], wanted: str, *, is_earlier: bool) -> KeptSession:
    """Return the session called `wanted`. Raises SessionMemoryError unless exactly one matches."""
    every = [session for session in sessions if bool(session.is_earlier) == is_earlier]
    matching = [session for session in every if session.session_id == wanted]
    matching = matching or [
        session
        for session in every
        if session.session_id.startswith(wanted) or session.title == wanted
    ]
    matching = matching or [
        session for session in every if wanted.casefold() in session.title.casefold()
    ]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise SessionMemoryError(
            f"no kept session is called {wanted!r}",
            "session-memory restore lists the kept sessions",
        )
    shown = "\n".join([f"  {_line(session)}" for session in matching[:SHOWN]])
    raise SessionMemoryError(
        f"{counted(len(matching), 'kept session')} match {wanted!r}",
        f"give the id of one:\n{shown}",
    )


def _variable(runtime: Runtime, config_dir: str) -> str:
    """Return the value that the runtime's variable needs for `config_dir`; '' for the usual one."""
    if runtime.config_dir(os.environ) == config_dir:
        return ""
    values = (config_dir, os.path.dirname(config_dir))
    return next(
        (
            directory
            for directory in values
            if runtime.config_dir({runtime.CONFIG_VARIABLE: directory}) == config_dir
        ),
        "",
    )
