"""Context of a runtime's event: its home, its session, that session's transcript, the settings."""

from __future__ import annotations

import time

from ...common.errors import SessionMemoryError
from ...common.system.deadline import Deadline
from ...common.system.files import is_directory, is_file, unfinished, user_dir
from ...common.text.paths import is_name
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import runtimes_here
from ...sessions.settings.homes import (
    ENV_HOME,
    ENV_SESSION,
    Home,
    environment,
    homes_above,
    person_home,
    runtime_home,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import stat_result

    from ...sessions.settings.compiled import Settings
    from ...sessions.transcripts.entries import Session
    from ...sessions.transcripts.old_sessions import OldSessions
    from ...sessions.transcripts.projects import (
        FolderLists,
        FoldersByRuntime,
        Places,
        SubAgents,
    )

    Event = dict[str, object]  # the JSON object that the runtime gives to a hook


def _rows() -> dict[str, dict[str, tuple[str, str, str]]]:
    from ...extension_points import EVENTS

    return EVENTS


PREBUILT = _rows()  # so a bundle has the rows without the module
MISSED = "/missed.json"  # in the state directory, if hooks missed their deadlines


class EventError(SessionMemoryError):
    """The session or the home of an event is unknown."""


class Context:
    """An event and the session that it belongs to.

    `session` is its key in the home: the name in an agent home ('' without one), else the
    `session_id`, which is the runtime's own. `own_path` is its transcript, which may not exist yet,
    `config_dir` the runtime's directory ('' if not needed), `directory` its start directory.
    `named` are the named sessions of the home, if they were read already. `sub_agents` are those in
    the project's index, and `old_sessions` those that were left out of a large folder, after
    `other_sessions` has read them. No session is left out if the context `lists_all`. `statuses`
    has the status of each file that a call is about to edit, after they were checked. `environ` is
    the environment that the runtime gave the hook, empty for a callback. Parts of the work that may
    fail or be slow run under the `deadline`."""

    def __init__(
        self,
        event: Event,
        home: Home,
        session: str,
        own_path: str,
        runtime: Runtime,
        *,
        session_id: str,
        config_dir: str = "",
        directory: str = "",
    ) -> None:
        """Raises ConfigError if the home's settings cannot be used."""
        self.event = event
        self.home = home
        self.session = session
        self.session_id = session_id
        self.own_path = own_path
        self.runtime = runtime
        self.config_dir = config_dir
        self.directory = directory
        self.environ: Mapping[str, str] = {}
        self.named: list[Session] | None = None
        self.settings: Settings = home.settings()
        self.sub_agents: SubAgents = {}
        self.old_sessions: list[OldSessions] = []
        self.lists_all = False
        self.statuses: dict[str, stat_result | None] | None = None
        self.writes_later = False  # our copies of other runtimes' sessions
        self.deadline = Deadline()

    @property
    def cursor_file(self) -> str:
        """Return the file of the session's cursors.

        Raises EventError if it is not a named session of its home."""
        if not self.session:
            raise EventError(
                f"session {self.session_id} is not a named session of {self.home.root}"
            )
        return self.home.cursor_file(self.session)

    def other_sessions(self) -> list[Session]:
        """Return the sessions whose reports this one may get."""
        sessions, attempt = self.named, self.deadline.attempt
        scope, runtime = self.settings.scope, self.runtime
        if sessions is None and self.home.sessions_dir:
            sessions = runtime.other_sessions(
                self.home.sessions_dir, self.config_dir, self.own_path, scope
            )
        if sessions is None:
            from ...sessions.transcripts.projects import sessions_of

            places = self._places()
            folders, self.sub_agents = attempt("project", self._project, places) or ({}, {})
            is_whole = self.lists_all or scope != "project"
            sessions, lists = [], None if is_whole else self._lists(self.home)
            for place_runtime, config_dir in places:
                own_path = self.own_path if place_runtime is runtime else None
                inputs = (
                    place_runtime,
                    config_dir,
                    own_path,
                    scope,
                    folders.get(place_runtime.name, ()),
                    lists,
                )
                sessions += attempt(place_runtime.name, sessions_of, *inputs) or []
            if lists is not None:
                self.old_sessions = lists.old
                if len(sessions) >= lists.MANY:
                    may_be_old = [
                        each for each in sessions if (each.runtime or runtime).LISTS_RECENT
                    ]
                    attempt("old sessions", lists.keep, may_be_old)
            if self.sub_agents:
                from ...sessions.transcripts.projects import take_sub_agents

                take_sub_agents(sessions, self.sub_agents)
        if self.settings.shared_url:
            from ...sessions.transcripts.remote_sessions import remote_sessions

            asked_of_others = (self.home.remote_dir, self.home.remote_start(self.directory))
            sessions = [*sessions, *(attempt("team", remote_sessions, *asked_of_others) or [])]
        return [session for session in sessions if session.key != self.session]

    def note_active(self) -> None:
        """Note that a hook of the session runs, so others do not take it for an old one."""
        if not self.runtime.LISTS_RECENT or not self.own_path:
            return
        homes = [self.home]
        if self.home.sessions_dir and not self.home.is_isolated:
            homes.append(runtime_home(self.config_dir, self.runtime.USUAL_DIR, environment()))
        for home in homes:
            lists = self._lists(home)
            self.deadline.attempt("old sessions", lists.note_active, self.own_path)

    def _lists(self, home: Home) -> FolderLists:
        from ...sessions.transcripts.projects import FolderLists

        return FolderLists(home.folder_list, self.settings.first_sight_seconds, time.time())

    def features(self, event: str) -> list[tuple[str, str]]:
        """Return an event's wanted features, each with its name and location, without loading any.

        They are the rows of `extension_points.EVENTS` that the settings want and whose file exists.
        """
        return [
            (name, place)
            for name, (place, file, setting) in PREBUILT.get(event, {}).items()
            if self._is_wanted(setting) and (not file or self._has(file))
        ]

    def ask(self, feature: tuple[str, str], *arguments: object) -> object:
        """Load a feature and return its answer; None if it fails, is late or was deleted."""
        from ...common.extensions import load_present

        def answer(place: str) -> object:
            return next((act(self, *arguments) for act in load_present([place])), None)

        return self.deadline.attempt(feature[0], answer, feature[1])

    def _has(self, file: str) -> bool:
        directory, _, name = file.partition("/")
        return is_file(f"{getattr(self.home, directory)}/{name}")

    def _is_wanted(self, setting: str) -> bool:
        section, _, name = setting.rpartition(".")
        if section:
            return bool(getattr(self.settings, section).get(name, True))
        return not name or bool(getattr(self.settings, name))

    def _places(self) -> Places:
        """Return the session's runtime and the person's other runtimes, each with its directory."""
        attempt = self.deadline.attempt
        attempt(self.runtime.name, self._refresh, self.runtime, self.config_dir)
        places = [(self.runtime, self.config_dir)]
        environ = environment()
        if self.home.memory_dir != person_home(environ).memory_dir:
            return places
        for runtime in runtimes_here(environ):
            if runtime is not self.runtime:
                attempt(
                    runtime.name,
                    lambda runtime_here: self._refresh(
                        runtime_here, runtime_here.config_dir(environ)
                    ),
                    runtime,
                )
                config_dir = attempt(runtime.name, self._config_dir_of, runtime, environ)
                if config_dir is not None:
                    places.append((runtime, config_dir))
        return places

    def _refresh(self, runtime: Runtime, config_dir: str) -> None:
        """Update our copies of a runtime's sessions, or leave the writing for later."""
        if not self.writes_later:
            runtime.refresh(config_dir)
            return
        runtime.look(config_dir)
        if end := unfinished(self.own_path):  # its size is needed
            end.finish()

    def _config_dir_of(self, runtime: Runtime, environ: Mapping[str, str]) -> str | None:
        """Return another runtime's directory if its sessions are stored in the same home, or ''."""
        config_dir = runtime.config_dir(environ)
        is_here = is_directory(runtime.transcripts_dir(config_dir))
        is_ours = (
            is_here
            and runtime_home(config_dir, runtime.USUAL_DIR, environ).memory_dir
            == self.home.memory_dir
        )
        return config_dir if is_ours else None

    def _project(self, places: Places) -> tuple[FoldersByRuntime, SubAgents]:
        from ...sessions.transcripts.projects import kept_project

        index_file = self.home.project_index(self.directory)
        project = kept_project(places, self.directory, index_file)
        if project is None:
            from ...sessions.transcripts.project_folders import keep_project

            home = self.home
            project = keep_project(
                places, self.directory, home.user_dir, index_file, home.repositories_file
            )
        return project


def home_of(event: Event, environ: Mapping[str, str], runtime: Runtime) -> Home:
    """Return the agent home in which the session started, else the person's."""
    start = _start_dir(event, environ, runtime)
    home, stop = None, user_dir(environ)
    if next(homes_above(start, environ, stop, runtime.SESSIONS_FOLDER), None):
        # only now: most directories do not even look like a home
        from ...sessions.settings.registry import agent_home

        home = agent_home(start, environ, stop=stop, folder=runtime.SESSIONS_FOLDER)
    return home or runtime_home(
        runtime.event_config_dir(event, environ), runtime.USUAL_DIR, environ
    )


def context_of(
    event: Event,
    environ: Mapping[str, str],
    runtime: Runtime,
    home: Home,
    deadline: Deadline | None = None,
) -> Context:
    """Return the context of an event in the `home` that `home_of` found.

    Raises EventError, ConfigError."""
    if not is_directory(home.root):
        raise EventError(f"{home.root}: no such directory")
    event = runtime.own_event(event, environ)
    session_id = event.get("session_id")
    if not isinstance(session_id, str) or not is_name(session_id):
        raise EventError("the event does not name a session")
    config_dir = runtime.event_config_dir(event, environ)
    own_path = runtime.own_path(event, _start_dir(event, environ, runtime), config_dir)
    name, named = session_id, None
    if home.sessions_dir:
        name = environ.get(ENV_SESSION, "")
        if not name:
            named = runtime.other_sessions(home.sessions_dir, config_dir, own_path, "project")
            name = runtime.own_name(event, home.sessions_dir, named)
        name = name if is_name(name) else ""
    directory = runtime.project_start(event, environ)
    context = Context(
        event,
        home,
        name,
        own_path,
        runtime,
        session_id=session_id,
        config_dir=config_dir,
        directory=directory,
    )
    context.environ, context.named = environ, named
    context.deadline = deadline or context.deadline
    return context


def _start_dir(event: Event, environ: Mapping[str, str], runtime: Runtime) -> str:
    return environ.get(ENV_HOME) or runtime.start_dir(event, environ)
