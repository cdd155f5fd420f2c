"""Opens a group's directories for reading and writing, so that no step on the way can be exchanged for a symlink."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..system.confined_files import pinned
from .homes import Home
from .host_layout import Group


class HeldGroup:
    """A group's place for as long as it is held. `project_dir` is '' where there are no transcripts yet."""

    def __init__(self, group: Group, project_dir: str, conversations_dir: str) -> None:
        self._group = group
        self._project_dir = project_dir
        self.conversations_dir = conversations_dir

    def transcript(self, session_id: str) -> str:
        """Return the path of a session's transcript; '' if there can be none."""
        name = os.path.basename(self._group.transcript(session_id))
        return self._project_dir and f"{self._project_dir}/{name}"


class HeldHome(Home):
    """A group's agent home for as long as it is held. `project_dir` holds its transcripts; its settings lie with the
    host."""

    def __init__(self, home: Home, sessions_dir: str, state_dir: str, cursors_dir: str, project_dir: str) -> None:
        memory_dir = os.path.dirname(state_dir)
        super().__init__(home.root, memory_dir, home.root, sessions_dir=sessions_dir, rules_files=home.rules_files)
        self.state_dir = state_dir
        self.log_file = f"{state_dir}/{os.path.basename(self.log_file)}"
        self.config_file = home.config_file
        self.compiled_file = home.compiled_file
        self.project_dir = project_dir
        self._cursors_dir = cursors_dir

    def cursor_file(self, session: str) -> str:
        """The cursors of one consuming session."""
        return f"{self._cursors_dir}/{session}.json"


@contextmanager
def held(group: Group) -> Iterator[HeldGroup]:
    """Holds a group's place until the block ends. Raises OutsideGroupError where a part of it is a link."""
    with ExitStack() as stack:
        try:
            project_dir = stack.enter_context(pinned(group.host, os.path.dirname(group.transcript("x"))))
        except FileNotFoundError:
            project_dir = ""
        conversations_dir = stack.enter_context(pinned(group.host, group.conversations_dir, make=bool(project_dir)))
        yield HeldGroup(group, project_dir, conversations_dir)


@contextmanager
def held_home(group: Group) -> Iterator[HeldHome]:
    """Holds a group's agent home until the block ends. Raises OutsideGroupError where a part of it is a link,
    FileNotFoundError where it has no transcripts yet."""
    home = group.memory_home
    with ExitStack() as stack:
        project_dir = stack.enter_context(pinned(group.host, os.path.dirname(group.transcript("x"))))
        sessions_dir = stack.enter_context(pinned(group.host, home.sessions_dir, make=True))
        state_dir = stack.enter_context(pinned(group.host, home.state_dir, make=True))
        cursors_dir = stack.enter_context(pinned(group.host, os.path.dirname(home.cursor_file("x")), make=True))
        yield HeldHome(home, sessions_dir, state_dir, cursors_dir, project_dir)
