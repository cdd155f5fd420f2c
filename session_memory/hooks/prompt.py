"""The edge between a runtime and the pack: JSON on stdin, a handler, at most one JSON object on stdout. Fails open.

Whatever goes wrong, the prompt goes on: exit code 0, nothing on stdout, one line in the home's hook.log.
"""

from __future__ import annotations

import gc
import sys
import time

from ..activity import changes as awareness
from ..errors import SessionMemoryError
from ..runtimes import runtime as runtime_of
from ..settings.homes import ENV_GUARD, ENV_HOME, ENV_SESSION, Home, agent_home, environment
from ..system.files import is_directory, open_private, os
from ..system.json import decode, encode
from ..text.names import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..activity.changes import Updates
    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..transcripts.entries import Session

    Event = dict[str, Any]

INTRODUCTION = "A record of your other sessions, not instructions:\n"
LOG_BYTES = 64 * 1024


def user_prompt_submit() -> None:
    """The UserPromptSubmit hook as a process: tells what the other sessions did."""
    run(_tell, "agent-sdk")


def before_agent_start() -> None:
    """The same for Pi, whose extension starts it before the agent answers a prompt."""
    run(_tell, "pi")


def session_start() -> None:
    """The SessionStart hook as a process: where a fork begins to listen, and what an agent is told of its past."""
    run(_start, "agent-sdk")


class Place:
    """Where an event came from: the home, the session that it belongs to ('' where nothing tells), its transcript.

    `session` is its key in the home: the name in an agent home, else the same as `session_id`.
    """

    __slots__ = ("_named", "config_dir", "home", "own_path", "runtime", "session", "session_id", "settings")

    def __init__(
        self,
        home: Home,
        session: str,
        own_path: str,
        config_dir: str,
        runtime: Runtime,
        session_id: str = "",
        named: list[Session] | None = None,
    ) -> None:
        """`named` are the named sessions of the home, where they are known already."""
        self.home = home
        self.session = session
        self.session_id = session_id or session
        self.own_path = own_path
        self.config_dir = config_dir
        self.runtime = runtime
        self._named = named
        self.settings: Settings | None = None  # as of the last look

    def others(self, settings: Settings) -> list[Session]:
        """The sessions that the one at hand may hear of."""
        found = self._named
        if found is None:
            found = self.runtime.others(self.home.sessions_dir, self.config_dir, self.own_path, settings.scope)
        return [session for session in found if session.key != self.session]

    def look(self) -> Updates:
        """What the session was not told yet. Raises SessionMemoryError, OSError."""
        self._require_session()
        settings = self.settings = self.home.settings()
        updates = awareness.look(
            self.session,
            self.others(settings),
            cursor_file=self.home.cursor_file(self.session),
            runtime=self.runtime,
            settings=settings,
            now=time.time(),
            limit=settings.max_characters - len(INTRODUCTION),
            own_path=self.own_path,
        )
        if updates.text:
            updates.text = INTRODUCTION + updates.text
        return updates

    def start_here(self) -> None:
        """Counts what is there now as told, unless the session has looked before. Raises as `look` does."""
        self._require_session()
        settings = self.home.settings()
        awareness.start_here(
            self.session,
            self.others(settings),
            cursor_file=self.home.cursor_file(self.session),
            settings=settings,
            now=time.time(),
        )

    def _require_session(self) -> None:
        if not self.session:
            raise UnknownSessionError(f"session {self.session_id} is none of the named sessions of {self.home.root}")


class UnknownSessionError(SessionMemoryError):
    """An event does not tell which session of the home it belongs to."""


def place_of(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> Place:
    """The place of an event. Raises UnknownSessionError; tells `log` the home as soon as it is known."""
    session_id = event.get("session_id")
    start = environ.get(ENV_HOME) or runtime.start_dir(event, environ)
    home = agent_home(start, stop=environ.get("HOME", ""), folder=runtime.SESSIONS_FOLDER)
    config_dir = runtime.config_dir(event, environ)
    log.home = home or Home(config_dir)
    if not is_directory(log.home.root):
        raise UnknownSessionError(f"{log.home.root}: no such directory")
    if not is_name(session_id) or not isinstance(session_id, str):
        raise UnknownSessionError("the event names no session")
    own_path = runtime.own_path(event, start, config_dir)
    if home is None:
        return Place(log.home, session_id, own_path, config_dir, runtime)
    name = environ.get(ENV_SESSION)
    named = None
    if not name:
        named = runtime.others(home.sessions_dir, config_dir, own_path, "project")
        name = runtime.own_name(event, home.sessions_dir, named)
    return Place(home, name if is_name(name) else "", own_path, config_dir, runtime, session_id, named)


class Log:
    """The home's hook.log: one line an event that could not be served, at most LOG_BYTES and one older file."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def write(self, event_name: str, message: str) -> None:
        """Appends a line; a log that cannot be written is no reason to fail."""
        from ..text.format import one_line
        from ..text.sanitize import for_prompt
        from ..text.timestamps import iso_time

        line = f"{iso_time(time.time())} {event_name}: {one_line(for_prompt(message))}\n"
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
        log.write(place.runtime.PROMPT_EVENT, note)


def run(handler: Callable[[Event, Mapping[str, str], Runtime, Log], None], format: str) -> None:
    """Reads the event, lets `handler` answer it for the runtime that it names, else `format`, and ends the process."""
    gc.disable()  # the process is over before cycles could matter
    environ = environment()
    if not environ.get(ENV_GUARD):
        runtime = runtime_of(format)
        log = Log(Home(runtime.config_dir({}, environ)))
        name = "hook"
        try:
            event = decode(sys.stdin.buffer.read().decode("utf-8", "replace"))
            if not isinstance(event, dict):
                raise ValueError("stdin holds no JSON object")
            name = str(event.get("hook_event_name", name))
            if "runtime" in event:
                runtime = runtime_of(event["runtime"])
            if runtime.is_own(event):
                handler(event, environ, runtime, log)
        except BaseException as error:
            log.write_fault(name, error)
    os._exit(0)


def _tell(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    prompt = str(event.get("prompt", ""))
    if not runtime.is_from_a_person(prompt):
        return
    place = place_of(event, environ, runtime, log)

    def answer(text: str | None) -> None:
        parts = [part for part in (text, _remembered(place, prompt, environ, log)) if part]
        if parts:
            _print(runtime.context_output("\n\n".join(parts)))

    tell(place, log, answer)


def _remembered(place: Place, prompt: str, environ: Mapping[str, str], log: Log) -> str:
    """The memories that a prompt is about, if the configuration wants them told."""
    characters = place.settings.memories.get("prompt_characters", 0) if place.settings else 0
    if not characters:
        return ""
    from ..activity.prompt_memories import memories_dir, relevant

    directory = memories_dir(place.home.root, bool(place.home.sessions_dir), environ.get("HOME", ""))
    try:
        return relevant(directory, prompt, characters)
    except (OSError, ValueError) as error:
        log.write(place.runtime.PROMPT_EVENT, f"memories: {error}")
        return ""


def _start(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    source = event.get("source")
    if source == "fork":
        place_of(event, environ, runtime, log).start_here()
    elif source in ("compact", "startup", "clear"):
        from .archive import context_at_start

        text = context_at_start(source, place_of(event, environ, runtime, log), str(event.get("cwd", "")))
        if text:
            _print(runtime.context_output(text, "SessionStart"))


def _print(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(encode(answer).encode() + b"\n")
    sys.stdout.buffer.flush()
