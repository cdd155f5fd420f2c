"""Finds the caller's store: an agent's, a group's of a host, the whole host's, or a person's."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import SessionMemoryError
from ...common.system.files import Closing, path_text
from ...common.text.paths import is_name
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings import homes
from ...sessions.settings.homes import ENV_DIR, Home
from ...sessions.settings.host_layout import GLOBAL, Layout
from ...sessions.settings.registry import agent_home, is_registered_host, unregistered_home
from ...sessions.settings.sections import (
    MemorySettings,
    StoreSettings,
    is_inside,
    memory_settings,
    store_settings,
)
from .ingest.sources import DEEPEST, SourceDirectory, SourceFile
from .rules import ReadRules
from .values import Conversation, Visible

if TYPE_CHECKING:
    from .ingest.values import FileState
    from .sqlite.engine import SqliteStore

# Directories below an agent home that its runtime may be started in and that may contain the
# runtime's own directory.
_WORK_DIRS = ("", "/home")


class Archives(NamedTuple):
    """A directory with archives of the group `home` ('' without groups).

    It is confined as in sources.SourceDirectory."""

    directory: str
    home: str = ""
    confined_to: str = ""


class StoreLocation(NamedTuple):
    """The store's file, and the facts about the store.

    They are the watched directories, the archives that replace lost transcripts, the groups whose
    entries may be seen (None: all), and its home."""

    database: str
    watched: Sequence[SourceDirectory]
    archives: Sequence[Archives]
    visible: Visible
    settings: StoreSettings
    home: Home
    environ: Mapping[str, str]

    def home_for(self, name: str = "") -> Home:
        """Return the home in the store with a name, or for '' the store's own home."""
        host = self.home.root
        return (
            homes.home_at(f"{host}/groups/{name}", self.environ, host=host) if name else self.home
        )

    @property
    def home_names(self) -> list[str]:
        """Return the names of homes that the caller may see; [''] for a store of one home."""
        if self.visible is not None:
            return list(self.visible)
        return list(dict.fromkeys(watched.home for watched in self.watched)) or [""]

    @property
    def memory_settings(self) -> MemorySettings:
        """Return the section `memories` of the store's home. Raises ConfigError."""
        return memory_settings(self.home.settings().memories)

    @property
    def caller_home(self) -> Home:
        """Return the home of the only group that the caller may see, else the store's home."""
        is_alone = self.visible is not None and len(self.visible) == 1
        return self.home_for(self.home_names[0]) if is_alone else self.home

    def rules(self, with_private: bool = False) -> ReadRules:
        """Return the rules for the content of the store.

        `with_private` is for a person who wants to see hidden content."""
        return ReadRules(self.home_for, self.environ, with_private)

    def transcript_of(self, conversation: Conversation) -> SourceFile | None:
        """Return the transcript; None if it is gone or must not be shown."""
        key = conversation.source_file
        for directory in self.watched if key else ():
            if directory.home == conversation.home and directory.holds(key):
                file = directory.file_at(f"{directory.path}/{key}")
                if file is not None:
                    return file
        return None

    def rewound_offsets(self, conversation: Conversation) -> set[int]:
        """Return the offsets of items in a conversation's file that were taken back by rewinding.

        Only the transcript shows that: without it, none are returned."""
        from ...sessions.transcripts.lines import first_line
        from ...sessions.transcripts.reader import TranscriptReader

        runtimes = [each for each in all_runtimes() if each.name == conversation.runtime]
        try:
            file = self.transcript_of(conversation)
            if file is None or not runtimes:
                return set()
            with Closing(file.open()) as descriptor:
                reader = TranscriptReader(runtimes[0], first_line(descriptor))
                return reader.rewound_offsets(descriptor)
        except (OSError, SessionMemoryError):
            return set()

    def known_files(self, store: SqliteStore) -> Iterator[FileState]:
        """Yield the files in the store that the caller may see. Raises DatabaseError."""
        for home in self.home_names:
            yield from store.file_states(home).values()

    @property
    def own_sessions(self) -> tuple[str, ...]:
        """Return the ids of the caller's sessions, if the caller is an agent."""
        ids = [runtime.own_session_id(self.environ) for runtime in all_runtimes()]
        return tuple(filter(None, ids))


class NoStoreError(SessionMemoryError):
    """A path that has no store."""


def find_location(path: str | None, environ: Mapping[str, str]) -> StoreLocation:
    """Return the store of the home `path`, else of the current directory's, else of this user.

    The current directory may be in an agent home or a host. Raises NoStoreError for a path that is
    not a home, ConfigError."""
    user = homes.user_dir(environ)
    start = os.path.abspath(path) if path else environ.get(homes.ENV_HOME) or os.getcwd()
    named = homes.naming(path and start, environ)
    folders = [runtime.SESSIONS_FOLDER for runtime in all_runtimes()]
    agent_homes = [agent_home(start, named, stop=user, folder=folder) for folder in folders]
    home = max(
        (home_found for home_found in agent_homes if home_found),
        key=lambda home_found: len(home_found.root),
        default=None,
    )
    at = home.root if home else start
    if host := homes.host_of(at):
        return _of_host(host, at if at != host else "", environ)
    if home:
        return _of_agent(home, environ, user)
    person = homes.person_home(environ)
    if path and os.path.realpath(start) in (
        os.path.realpath(user),
        os.path.realpath(person.memory_dir),
    ):
        return _of_person(person, environ)
    for runtime, home in _runtime_homes(start if path else "", environ):
        is_person_s = home.memory_dir == person.memory_dir
        if is_person_s:
            return _of_person(person, environ)
        settings = store_settings(home.settings().store, user)
        return _place(home, _all_transcripts(runtime, home.root), settings, environ)
    if not path:
        return _of_person(person, environ)
    looks = unregistered_home(start, environ, stop=os.path.dirname(start))
    hint = (
        f"if it is an agent's home, register it: session-memory install --home {shlex.quote(looks)}"
    )
    other = "name an agent home, a host's directory, a runtime's directory, or your home directory"
    raise NoStoreError(f"{path}: it is not a home with a store", hint if looks else other)


def _runtime_homes(directory: str, environ: Mapping[str, str]) -> Iterator[tuple[Runtime, Home]]:
    """Yield the runtimes whose own directory is `directory`.

    Without `directory`, yield the runtime of the agent that asks. If no agent asks, yield the
    runtimes for which the environment names an unusual directory."""
    if directory:
        for runtime in _by_directory(directory, environ):
            yield runtime, homes.runtime_home(directory, runtime.USUAL_DIR, environ)
        return
    asking = [runtime for runtime in all_runtimes() if environ.get(runtime.OWN_ID_VARIABLE)]
    for runtime in asking or all_runtimes():
        home = homes.runtime_home(runtime.config_dir(environ), runtime.USUAL_DIR, environ)
        if asking or home.rules_files:
            yield runtime, home


def _by_directory(directory: str, environ: Mapping[str, str]) -> list[Runtime]:
    """Return the runtimes whose own directory may be `directory`, the most likely first.

    Several have a folder `sessions` in theirs, so the place tells more, and then the name."""
    user, real = homes.user_dir(environ), os.path.realpath(directory)

    def rank(runtime: Runtime) -> int:
        places = (runtime.config_dir(environ), f"{user}/{runtime.USUAL_DIR}")
        if real in [os.path.realpath(place) for place in places]:
            return 0
        if f"{real}/".endswith(f"/{runtime.USUAL_DIR}/"):
            return 1
        return 2 if os.path.isdir(runtime.transcripts_dir(directory)) else 3

    ranks = {runtime: rank(runtime) for runtime in all_runtimes() if os.path.isdir(real)}
    return sorted([runtime for runtime in ranks if ranks[runtime] < 3], key=ranks.__getitem__)


def _of_person(home: Home, environ: Mapping[str, str]) -> StoreLocation:
    """Return the store of all sessions of a user, from all runtimes in their usual directories."""
    settings = store_settings(home.settings().store, home.root)
    watched = [
        directory
        for runtime in all_runtimes()
        for directory in _all_transcripts(runtime, f"{home.root}/{runtime.USUAL_DIR}")
    ]
    return _place(home, watched, settings, environ)


def _all_transcripts(
    runtime: Runtime, config_dir: str, within: tuple[str, ...] | None = None
) -> list[SourceDirectory]:
    """Return the directories of a runtime's transcripts, and of our copies of compressed ones.

    They are limited to `within`."""
    refresh = partial(runtime.refresh, config_dir, everything=True)
    root, copies, deepest = (
        runtime.transcripts_dir(config_dir),
        runtime.copies_dir(config_dir),
        runtime.DEEPEST,
    )
    directories = [
        SourceDirectory(
            root,
            within=within,
            deepest=deepest,
            refresh=refresh,
            copies=copies,
            origin=(runtime, config_dir),
        )
    ]
    return (
        [*directories, SourceDirectory(copies, within=within, deepest=deepest)]
        if copies
        else directories
    )


def _of_agent(home: Home, environ: Mapping[str, str], user: str) -> StoreLocation:
    """Return the store of one agent.

    It covers the agent's own directories, and the user's sessions that started in its home or have
    a name there."""
    settings = store_settings(home.settings().store, user)
    by_root: dict[str, list[SourceDirectory]] = {}
    for runtime in all_runtimes():
        config_dir = runtime.config_dir(environ)
        named = homes.named_home(home.root, environ, runtime.SESSIONS_FOLDER)
        sessions = (
            runtime.named_sessions(named.sessions_dir, config_dir, home.root) if named else []
        )
        for directory in [f"{home.root}{below}/{runtime.USUAL_DIR}" for below in _WORK_DIRS]:
            if os.path.isdir(runtime.transcripts_dir(directory)) and is_inside(
                directory, home.root
            ):
                by_root[os.path.realpath(runtime.transcripts_dir(directory))] = _all_transcripts(
                    runtime, directory
                )
        if named and any(session.path.startswith(named.sessions_dir + "/") for session in sessions):
            by_root[os.path.realpath(named.sessions_dir)] = [
                SourceDirectory(named.sessions_dir, confined_to=home.root)
            ]
        # only their content shows which of the user's sessions are the agent's
        if not runtime.HAS_PROJECT_FOLDERS:
            continue
        root = runtime.transcripts_dir(config_dir)
        within = [
            os.path.basename(runtime.project_dir(config_dir, home.root + below))
            for below in _WORK_DIRS
        ]
        within += [
            session.path[len(root) + 1 :]
            for session in sessions
            if session.path.startswith(root + "/")
        ]
        by_root.setdefault(
            os.path.realpath(root),
            _all_transcripts(runtime, config_dir, tuple(dict.fromkeys(within))),
        )
    directories = [directory for group in by_root.values() for directory in group]
    return _place(home, directories, settings, environ)


def _of_host(host: str, group_root: str, environ: Mapping[str, str]) -> StoreLocation:
    """Return the store of one group of a host, or of all its groups if `group_root` is ''.

    The gap is the same for all groups."""
    layout = Layout(host)
    home = homes.home_at(layout.root, environ, is_host=is_registered_host(layout.root, environ))
    settings = store_settings(home.settings().store, layout.root)
    names = [os.path.basename(group_root)] if group_root else _group_names(layout.groups_dir)
    groups = [layout.group(name) for name in names]
    watched = [
        SourceDirectory(
            group.runtime.transcripts_dir(group.config_dir),
            group.name,
            confined_to=layout.root,
            origin=(group.runtime, group.config_dir),
        )
        for group in groups
    ]
    archives = [Archives(group.conversations_dir, group.name, layout.root) for group in groups]
    visible = tuple(names) if group_root else None
    return StoreLocation(
        _database_in(layout.root), watched, archives, visible, settings, home, environ
    )


def _group_names(groups_dir: str) -> list[str]:
    with os.scandir(groups_dir) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(name for name in names if is_name(name) and name.casefold() != GLOBAL)


def _place(
    home: Home,
    directories: list[SourceDirectory],
    settings: StoreSettings,
    environ: Mapping[str, str],
) -> StoreLocation:
    """Return the store in a home, for the directories in its settings or else for `directories`."""
    watched = directories
    if settings.watch_path is not None:
        root = home.root if home.is_confined else ""
        watched = list(_named(settings.watch_path, directories, root))
    archives = [Archives(home.conversations_dir)]
    return StoreLocation(
        _database_in(home.memory_dir), watched, archives, None, settings, home, environ
    )


def _named(
    paths: Sequence[str], directories: Sequence[SourceDirectory], root: str
) -> Iterator[SourceDirectory]:
    """Yield the directories at the paths in the settings, each below a runtime's as a part of it.

    So their files have the same keys as without these settings. A home that is confined has a
    `root`."""
    parts: dict[SourceDirectory, list[str]] = {}
    known = {directory.path: directory for directory in directories}
    for path in paths:
        wider = [each for each in directories if each.wider_key(path, "") and os.path.isdir(path)]
        if wider and wider[0].path not in paths:
            parts.setdefault(wider[0], []).append(wider[0].wider_key(path, "").rstrip("/"))
        elif not wider:
            of_runtime = known.get(path)
            yield SourceDirectory(
                path,
                is_named=True,
                confined_to=root if root and path.startswith(f"{root}/") else "",
                deepest=of_runtime.deepest if of_runtime else DEEPEST,
                origin=of_runtime.origin if of_runtime else None,
            )
    for directory, within in parts.items():
        yield SourceDirectory(
            directory.path,
            within=tuple(within),
            is_named=True,
            confined_to=root if root and directory.path.startswith(f"{root}/") else "",
            deepest=directory.deepest,
            origin=directory.origin,
        )


def _database_in(directory: str) -> str:
    """Return the path of the store in a directory.

    Raises NoStoreError for a path that SQLite would not open."""
    path = f"{directory}/{homes.STORE_FILE}"
    if path_text(path) != path:
        hint = f"set {ENV_DIR} to a directory with a name in UTF-8"
        raise NoStoreError(f"{path_text(path)}: the path of a store must be UTF-8", hint)
    return path
