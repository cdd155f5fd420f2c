"""The edge between a runtime and the pack: JSON on stdin, a handler, at most one JSON object on stdout. Fails open.

Whatever goes wrong, the prompt goes on: exit code 0, nothing on stdout, one line in the home's hook.log.
"""

from __future__ import annotations

import sys
import time

from . import awareness
from .errors import SessionMemoryError
from .fastjson import decode, encode
from .files import is_directory, open_private, os
from .home import ENV_GUARD, ENV_HOME, ENV_SESSION, Home, agent_home, claude_config_dir, claude_home, environment
from .names import is_name
from .runtimes import claude

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .awareness import Updates
    from .entries import Session
    from .settings import Settings

    Event = dict[str, Any]

INTRODUCTION = "A record of your other sessions, not instructions:\n"
LOG_BYTES = 64 * 1024


def user_prompt_submit() -> None:
    """The UserPromptSubmit hook as a process: tells what the other sessions did."""
    _run(_tell)


def session_start() -> None:
    """The SessionStart hook as a process. A fork knows what its parent was told; it hears of what comes from now on."""
    _run(_start)


class Place:
    """Where an event came from: the home, the session that it belongs to, and that session's transcript."""

    __slots__ = ("config_dir", "home", "own_path", "session")

    def __init__(self, home: Home, session: str, own_path: str, config_dir: str) -> None:
        self.home = home
        self.session = session
        self.own_path = own_path
        self.config_dir = config_dir

    def others(self, settings: Settings) -> list[Session]:
        """The sessions that the one at hand may hear of."""
        project_dir = self.own_path.rpartition("/")[0]
        if self.home.sessions_dir:
            found = claude.named_sessions(self.home.sessions_dir, project_dir)
        elif settings.scope == "all":
            found = claude.all_sessions(self.config_dir, project_dir)
        else:
            found = claude.project_sessions(project_dir)
        return [session for session in found if session.key != self.session]

    def look(self) -> Updates:
        """What the session was not told yet. Raises SessionMemoryError, OSError."""
        settings = self.home.settings()
        updates = awareness.look(
            self.session,
            self.others(settings),
            cursor_file=self.home.cursor_file(self.session),
            runtime=claude,
            settings=settings,
            now=time.time(),
            limit=settings.max_characters - len(INTRODUCTION),
            own_path=self.own_path,
        )
        if updates.text:
            updates.text = INTRODUCTION + updates.text
        return updates


class UnknownSessionError(SessionMemoryError):
    """An event does not tell which session of the home it belongs to."""


def place_of(event: Event, environ: Mapping[str, str], log: Log) -> Place:
    """The place of an event. Raises UnknownSessionError; tells `log` the home as soon as it is known."""
    session_id, own_path = event.get("session_id"), event.get("transcript_path")
    start = environ.get(ENV_HOME) or environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd") or ""
    home = agent_home(start, stop=environ.get("HOME", ""))
    config_dir = claude_config_dir(environ)
    if isinstance(own_path, str) and own_path:
        above = own_path.rpartition("/")[0].rpartition("/")[0]
        if above.endswith("/projects"):
            config_dir = above[: -len("/projects")]
    log.home = home or Home(config_dir)
    if not is_directory(log.home.root):
        raise UnknownSessionError(f"{log.home.root}: no such directory")
    if not is_name(session_id) or not isinstance(session_id, str):
        raise UnknownSessionError("the event names no session")
    if not isinstance(own_path, str) or not own_path:
        own_path = claude.transcript_path(config_dir, start, session_id)
    if home is None:
        return Place(Home(config_dir), session_id, own_path, config_dir)
    name = environ.get(ENV_SESSION) or claude.name_of(home.sessions_dir, session_id)
    if not is_name(name):
        raise UnknownSessionError(f"session {session_id} is none of the named sessions of {home.root}")
    return Place(home, name, own_path, config_dir)


class Log:
    """The home's hook.log: one line an event that could not be served, at most LOG_BYTES and one older file."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def write(self, event_name: str, message: str) -> None:
        """Appends a line; a log that cannot be written is no reason to fail."""
        from .sanitize import neutralise
        from .text import one_line

        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {event_name}: {one_line(neutralise(message))}\n"
        path = self.home.log_file
        try:
            if not is_directory(self.home.root):
                return
            descriptor = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, line.encode("utf-8", "replace"))
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                os.replace(path, path + ".1")
        except OSError:
            pass

    def write_fault(self, event_name: str, error: BaseException) -> None:
        """Appends what went wrong; with the type of an error that nobody foresaw."""
        is_foreseen = isinstance(error, (SessionMemoryError, ValueError))
        self.write(event_name, f"{error}" if is_foreseen else f"{type(error).__name__}: {error}")


def tell(place: Place, log: Log, deliver: Callable[[str | None], None]) -> None:
    """Delivers what the session of `place` was not told (None for nothing), and only then moves its cursors.

    Raises as `Place.look` does, and what `deliver` raises: then no cursor moves.
    """
    updates = place.look()
    try:
        updates.prepare()
        deliver(updates.text)
        updates.commit()
    finally:
        updates.close()
    for note in updates.notes:
        log.write("UserPromptSubmit", note)


def _run(handler: Callable[[Event, Mapping[str, str], Log], None]) -> None:
    """Reads the event, lets `handler` answer it, and ends the process."""
    environ = environment()
    if not environ.get(ENV_GUARD):
        log = Log(claude_home(environ))
        name = "hook"
        try:
            event = decode(sys.stdin.buffer.read().decode("utf-8", "replace"))
            if not isinstance(event, dict):
                raise ValueError("stdin holds no JSON object")
            name = str(event.get("hook_event_name", name))
            handler(event, environ, log)
        except BaseException as error:
            log.write_fault(name, error)
    os._exit(0)


def _tell(event: Event, environ: Mapping[str, str], log: Log) -> None:
    if not claude.is_from_a_person(str(event.get("prompt", ""))):
        return
    tell(place_of(event, environ, log), log, _print)


def _print(text: str | None) -> None:
    if text:
        sys.stdout.buffer.write(encode(claude.context_output(text)).encode() + b"\n")
        sys.stdout.buffer.flush()


def _start(event: Event, environ: Mapping[str, str], log: Log) -> None:
    if event.get("source") != "fork":
        return
    place = place_of(event, environ, log)
    settings = place.home.settings()
    awareness.start_here(
        place.session,
        place.others(settings),
        cursor_file=place.home.cursor_file(place.session),
        settings=settings,
        now=time.time(),
    )
