"""The rules for the content of a store, by transcript."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import Home
from ...sessions.settings.host_layout import Layout
from ...sessions.settings.privacy import Privacy
from ...sessions.settings.rules import Rule
from ...sessions.transcripts.gate import Family, Gate, Unruled, describe
from .values import RuleSubject


class ReadRules:
    """The rules for a store, read once when this is created.

    `home_for` returns the home whose rules apply to a group ('' without groups). `places` are the
    files and directories from which the rules were read."""

    def __init__(
        self,
        home_for: Callable[[str], Home],
        environ: Mapping[str, str],
        with_private: bool = False,
    ) -> None:
        self._home_for = home_for
        self._environ = environ
        self._with_private = with_private
        self._of_home: dict[str, Privacy] = {}
        self._names: dict[str, dict[str, list[str]]] = {}
        self.places: set[str] = set()
        self._privacy("")  # its settings count even if no transcript is checked

    def rule(self, file: RuleSubject) -> Rule:
        privacy = self._privacy(file.home)
        self.places.update(privacy.files(file.cwd))
        known = {file.session_id, file.title, file.home, file.file_path.partition("/")[0]}
        if privacy.has_rules(file.cwd):
            known.update(self.names(file))
        return privacy.rule(file.cwd, *(known - {""}))

    def gate(self, file: RuleSubject, runtime: Runtime, path: str) -> Gate:
        """Return the gate of the transcript at `path`. Raises OSError."""
        privacy = self._privacy(file.home)
        known = (file.home, file.file_path.partition("/")[0], *self.names(file))
        rules = Unruled(privacy) if self._with_private else privacy
        family = Family(rules, runtime, path, {path: [name for name in known if name]})
        return family.gate(path, describe(runtime, path, rules))

    def rule_for_directory(self, file: RuleSubject, directory: str) -> Rule:
        return self._privacy(file.home).of_directory(directory, file.cwd)

    def has_projects(self, file: RuleSubject) -> bool:
        return self._privacy(file.home).has_project_rules(file.cwd)

    def names(self, file: RuleSubject) -> list[str]:
        """Return the current and former names of a session.

        The names are the names that agents use and the names of saved sessions, in the home where
        the session started and in the store's home."""
        own_home = self._home_for(file.home)
        names = []
        for start in {own_home.root, file.cwd}:
            for home in self._privacy(file.home).agent_homes(start):
                names += self._known(home.sessions_dir, file, partial(self._named_in, home))
                names += self._known(home.conversations_dir, file, partial(self._archived_in, home))
        names += self._known(own_home.conversations_dir, file, partial(self._archived_in, own_home))
        if file.home:
            from ...sessions.transcripts.pointers import earlier_names  # only for groups of a host

            database = Layout(self._home_for("").root).database
            names += self._known(
                f"{database} {file.home}", file, partial(earlier_names, database, file.home)
            )
        return names

    def _known(
        self, place: str, file: RuleSubject, read: Callable[[], dict[str, list[str]]]
    ) -> list[str]:
        """Return the names of a session in a place, which is read once."""
        if place not in self._names:
            self._names[place] = read()
        return self._names[place].get(file.session_id, [])

    def _named_in(self, home: Home) -> dict[str, list[str]]:
        self.places.add(home.sessions_dir)
        names_by_session: dict[str, list[str]] = {}
        for runtime in all_runtimes():
            if os.path.basename(home.sessions_dir) == runtime.SESSIONS_FOLDER:
                config_dir = runtime.config_dir(self._environ)
                for session in runtime.other_sessions(home.sessions_dir, config_dir, "", "project"):
                    names_by_session.setdefault(runtime.session_id_of(session.path), []).append(
                        session.name
                    )
        return names_by_session

    def _archived_in(self, home: Home) -> dict[str, list[str]]:
        # only if there are rules: a search does not wait for it
        from ..archives.list import archived_names

        self.places.add(home.conversations_dir)
        return archived_names(home.conversations_dir)

    def _privacy(self, home_name: str) -> Privacy:
        if home_name not in self._of_home:
            consulted = [self._home_for(""), *([self._home_for(home_name)] if home_name else [])]
            self._of_home[home_name] = Privacy(self._environ, *consulted)
            self.places.update(self._of_home[home_name].files())
        return self._of_home[home_name]


StoreRules = Callable[[], ReadRules]  # reads them as they are now
