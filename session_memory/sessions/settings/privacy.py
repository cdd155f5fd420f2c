"""The rules for a session: the person's, the asking homes', and its agent home's.

All of them apply and the stricter wins, for every reader and every store. The agent home of a
session is the one where it started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ...common.system.git import locate_worktree, worktrees_of
from ..runtimes.table import all_runtimes
from . import homes
from .compiled import Settings
from .forgotten import ForgottenSessions, Tombstone, forgotten_until, read_file
from .homes import Home
from .rules import Rule, stricter


class Privacy:
    """The rules at the time of its creation.

    The rules of the homes `asking` count for every session, besides the person's. They are the
    homes of whoever asks, or of the store that is read."""

    def __init__(self, environ: Mapping[str, str], *asking: Home) -> None:
        self._environ = environ
        self._folders = tuple(
            dict.fromkeys([runtime.SESSIONS_FOLDER for runtime in all_runtimes()])
        )
        self._always = _by_file([homes.person_home(environ), *asking])
        self._user = homes.user_dir(environ)
        self._settings: dict[str, Settings] = {}
        self._of_start: dict[str, list[Settings]] = {}
        self._homes: dict[str, list[Home]] = {}
        self._forgotten: dict[str, list[Tombstone]] = {}
        self._messages: dict[tuple[str, ...], ForgottenSessions] = {}
        self._spelled: dict[str, set[str]] = {}

    def rule(self, start_directory: str, *names: str) -> Rule:
        """Return the rule for a session that started in `start_directory` and has any of `names`.

        `start_directory` is '' if unknown. The names are its name, title and id."""
        settings = self._for(start_directory)
        rule = _strictest([setting.rule(*names) for setting in settings])
        return stricter(rule, self.of_directory(start_directory, start_directory))

    def of_names(self, *names: str) -> Rule:
        """Return the rule for a session by its names only, wherever it started."""
        return _strictest([setting.rule(*names) for setting in self._for("")])

    def of_directory(self, directory: str, start_directory: str = "") -> Rule:
        """Return the rule for messages written while in `directory`, '' if unknown.

        The session started in `start_directory`."""
        settings = [setting for setting in self._for(start_directory) if setting.has_project_rules]
        if not settings:
            return Rule()
        directory = directory or start_directory
        if directory not in self._spelled:
            self._spelled[directory] = self._spellings(directory) if directory else {""}
        spellings = self._spelled[directory]
        return _strictest([setting.rule_for_directory(*spellings) for setting in settings])

    def _spellings(self, directory: str) -> set[str]:
        """Return the directory as given, its real path, and its path in the main worktree.

        A project is a repository, so a rule for it counts in all its worktrees."""
        real = os.path.realpath(directory)
        # Rules only hide, so they apply even where git refuses to work
        worktree = locate_worktree(real, self._user)
        if worktree is None or worktree.git_dir == worktree.common_dir:
            return {directory, real}
        mains = [
            tree.root
            for tree in worktrees_of(worktree.common_dir)
            if tree.git_dir == worktree.common_dir
        ]
        return {directory, real, *[main + real.removeprefix(worktree.root) for main in mains]}

    def is_open(self, start_directory: str = "") -> bool:
        """Return whether everything from sessions started there may be shown.

        It may if there are neither rules nor forgotten sessions."""
        forgotten = [self._forgotten_in(path) for path in self._forgotten_files(start_directory)]
        return not any(forgotten) and not self.has_rules(start_directory)

    def has_rules(self, start_directory: str = "") -> bool:
        return any(setting.has_rules for setting in self._for(start_directory))

    def has_name_rules(self, start_directory: str = "") -> bool:
        """Return whether any of these rules may apply to a name or a title."""
        return any(setting.has_name_rules for setting in self._for(start_directory))

    def has_project_rules(self, start_directory: str = "") -> bool:
        return any(setting.has_project_rules for setting in self._for(start_directory))

    def forgotten_until(self, session_id: str, start_directory: str) -> int | None:
        """Return the time up to which a session was forgotten anywhere, in milliseconds, or
        None."""
        files = self._forgotten_files(start_directory).items()
        times = [
            forgotten_until(self._forgotten_in(path), group, session_id, start_directory)
            for path, group in files
        ]
        return max([time for time in times if time is not None], default=None)

    def forgotten(self, start_directory: str) -> ForgottenSessions:
        """Return the forgotten sessions that a session started there may repeat. Raises OSError."""
        files = self._forgotten_files(start_directory)
        if tuple(files) not in self._messages:
            self._messages[tuple(files)] = ForgottenSessions(files, self._forgotten_in)
        return self._messages[tuple(files)]

    def _forgotten_files(self, start_directory: str) -> dict[str, str]:
        """Return the files with forgotten sessions, each with its sessions' group."""
        homes_by_file = {**self._always, **_by_file(self.agent_homes(start_directory))}
        return dict([pair for home in homes_by_file.values() for pair in home.forgotten_files()])

    def _forgotten_in(self, path: str) -> list[Tombstone]:
        if path not in self._forgotten:
            self._forgotten[path] = read_file(path)
        return self._forgotten[path]

    def files(self, start_directory: str = "") -> list[str]:
        """Return the files, existing or not, that decide what of a session may be shown.

        They are the settings with their rules, and the files with forgotten sessions. The session
        started in `start_directory`."""
        homes_by_file = {**self._always, **_by_file(self.agent_homes(start_directory))}
        rules = [
            path
            for home in homes_by_file.values()
            for path in (home.config_file, *home.rules_files)
        ]
        return list(dict.fromkeys([*rules, *self._forgotten_files(start_directory)]))

    def _for(self, start_directory: str) -> list[Settings]:
        """Return the settings whose rules count for a session; searched once for each directory."""
        if start_directory not in self._of_start:
            homes_by_file = {**self._always, **_by_file(self.agent_homes(start_directory))}
            for path, home in homes_by_file.items():
                if path not in self._settings:
                    self._settings[path] = home.settings()
            self._of_start[start_directory] = [self._settings[path] for path in homes_by_file]
        return self._of_start[start_directory]

    def agent_homes(self, start_directory: str) -> list[Home]:
        """Return the agent homes that contain a directory, for each runtime with named sessions.

        The search runs once for each directory. Unregistered homes count too, because rules only
        hide."""
        if start_directory not in self._homes:
            agent_homes = []
            for folder in self._folders if start_directory.startswith("/") else ():
                for home in homes.homes_above(start_directory, self._environ, self._user, folder):
                    host, names = homes.host_of(home.root), home.sessions_dir
                    agent_homes.append(
                        homes.home_at(home.root, self._environ, sessions_dir=names, host=host)
                    )
            self._homes[start_directory] = agent_homes
        return self._homes[start_directory]


def _by_file(found_homes: Sequence[Home]) -> dict[str, Home]:
    return {home.config_file: home for home in found_homes}


def _strictest(rules: Sequence[Rule]) -> Rule:
    strictest = Rule()
    for rule in rules:
        strictest = stricter(strictest, rule)
    return strictest
