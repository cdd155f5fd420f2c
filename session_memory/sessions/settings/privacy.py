"""The rules for a session: those of the person, of those who ask, and of the agent home it started
in.

The rules of all of them count and the stricter wins, whoever reads, and in whichever store the
session lies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ...common.system.git import locate_worktree, worktrees_of
from ..runtimes import all_runtimes
from . import homes
from .compiled import Settings
from .forgotten import ForgottenSessions, Tombstone, forgotten_until, read_file
from .homes import Home
from .rules import Rule, stricter


class Privacy:
    """The rules as they are when it is made. `asking` are homes whose rules count for every
    session, beside the person's: whoever asks, or has the store that is read."""

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
        """The rule for a session that was started in `start_directory` ('' where that is not known)
        and goes by any of `names`: its name, its title, its id."""
        settings = self._for(start_directory)
        rule = _strictest([one.rule(*names) for one in settings])
        return stricter(rule, self.of_directory(start_directory, start_directory))

    def of_directory(self, directory: str, start_directory: str = "") -> Rule:
        """The rule for what is said while in `directory`, in a session that was started in
        `start_directory`."""
        settings = [one for one in self._for(start_directory) if one.has_project_rules]
        if not directory or not settings:
            return Rule()
        if directory not in self._spelled:
            self._spelled[directory] = self._spellings(directory)
        spellings = self._spelled[directory]
        return _strictest(
            [one.rule_for_directory(spelled) for one in settings for spelled in spellings]
        )

    def _spellings(self, directory: str) -> set[str]:
        """The directory as it is called, its real path, and where it would lie in the main
        worktree: a project is a repository, and a rule for it counts in all its worktrees."""
        real = os.path.realpath(directory)
        found = locate_worktree(real, self._user)  # rules only hide: also where git refuses to work
        if found is None or found.git_dir == found.common_dir:
            return {directory, real}
        mains = [
            one.root for one in worktrees_of(found.common_dir) if one.git_dir == found.common_dir
        ]
        return {directory, real, *[main + real.removeprefix(found.root) for main in mains]}

    def is_open(self, start_directory: str = "") -> bool:
        """Return whether all may be told of whatever was started there: there is no rule, and
        nothing was forgotten."""
        forgotten = [self._forgotten_in(path) for path in self._forgotten_files(start_directory)]
        return not any(forgotten) and not self.has_rules(start_directory)

    def has_rules(self, start_directory: str = "") -> bool:
        return any(one.has_rules for one in self._for(start_directory))

    def has_name_rules(self, start_directory: str = "") -> bool:
        """Return whether any of these may be meant for a name or a title."""
        return any(one.has_name_rules for one in self._for(start_directory))

    def has_project_rules(self, start_directory: str = "") -> bool:
        return any(one.has_project_rules for one in self._for(start_directory))

    def forgotten_until(self, session_id: str, start_directory: str) -> int | None:
        """Return up to when a session was forgotten, in milliseconds, wherever it was; None for
        never."""
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
        """Return the files that say what was forgotten, each with the group that its sessions are
        of."""
        found = {**self._always, **_by_file(self.agent_homes(start_directory))}
        return dict([pair for home in found.values() for pair in home.forgotten_files()])

    def _forgotten_in(self, path: str) -> list[Tombstone]:
        if path not in self._forgotten:
            self._forgotten[path] = read_file(path)
        return self._forgotten[path]

    def files(self, start_directory: str = "") -> list[str]:
        """Return the files, there or not, that decide what may be told of a session that was
        started there: settings with their rules, and what was forgotten."""
        found = {**self._always, **_by_file(self.agent_homes(start_directory))}
        rules = [path for home in found.values() for path in (home.config_file, *home.rules_files)]
        return list(dict.fromkeys([*rules, *self._forgotten_files(start_directory)]))

    def _for(self, start_directory: str) -> list[Settings]:
        """The settings whose rules count for a session; looked for once a directory."""
        if start_directory not in self._of_start:
            found = {**self._always, **_by_file(self.agent_homes(start_directory))}
            for path, home in found.items():
                if path not in self._settings:
                    self._settings[path] = home.settings()
            self._of_start[start_directory] = [self._settings[path] for path in found]
        return self._of_start[start_directory]

    def agent_homes(self, start_directory: str) -> list[Home]:
        """Return the agent homes that a directory is in, as each runtime that names sessions there
        sees them; looked for once a directory. Those that nobody registered count too: rules only
        hide."""
        if start_directory not in self._homes:
            found = []
            for folder in self._folders if start_directory.startswith("/") else ():
                for home in homes.homes_above(start_directory, self._environ, self._user, folder):
                    host, names = homes.host_of(home.root), home.sessions_dir
                    found.append(
                        homes.home_at(home.root, self._environ, sessions_dir=names, host=host)
                    )
            self._homes[start_directory] = found
        return self._homes[start_directory]


def _by_file(found: Sequence[Home]) -> dict[str, Home]:
    return {home.config_file: home for home in found}


def _strictest(rules: Sequence[Rule]) -> Rule:
    found = Rule()
    for rule in rules:
        found = stricter(found, rule)
    return found
