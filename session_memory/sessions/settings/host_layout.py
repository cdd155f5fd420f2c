"""The paths of a host below its directory, and the check that a group's paths stay in the group.

Its directories are held open, so no step on the way to a file can be exchanged for a symlink.
"""

# .session-memory/config.yaml          settings
# .session-memory/groups/<group>.yaml  settings of one group
# store/messages.db                    messages, pointers, tasks: what survives a restart
# store/host.sock                      the socket channel
# data/sessions/<group>/.claude/       the runtime's directory: transcripts, settings.json
# data/ipc/<group>/{tasks,responses}/  requests of an agent without a database, and their answers
# skills/<name>/SKILL.md               skills that every group has
# groups/<group>/CLAUDE.md             who the group's agent is
# groups/<group>/conversations/        archives
# groups/global/CLAUDE.md              what every group but main is told too

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ...common.errors import WrongCallError
from ...common.system.files import make_private_dir
from ...common.text.paths import is_name
from ..confined_files import OutsideGroupError, check_steps, open_inside, pinned
from ..runtimes.base import Runtime
from ..runtimes.table import runtime
from .compiled import Settings
from .homes import MEMORY_DIR, Home, home_at

RUNTIME = "agent-sdk"  # the runtime that host.agent starts
MAIN = "main"
GLOBAL = "global"


class GroupNameError(WrongCallError):
    """A text that names no group."""


class Layout:
    """The paths of the host in the directory `root` (absolute, without links on the way to it)."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.realpath(root)
        self.store_dir = self.root + "/store"
        self.database = self.store_dir + "/messages.db"
        self.socket = self.store_dir + "/host.sock"
        self.lock_file = self.store_dir + "/host.lock"
        self.log_file = self.store_dir + "/host.log"
        self.config_file = f"{self.root}/{MEMORY_DIR}/config.yaml"
        self.skills_dir = self.root + "/skills"
        self.groups_dir = self.root + "/groups"
        self.global_instructions = f"{self.groups_dir}/{GLOBAL}/CLAUDE.md"

    def group(self, name: str) -> Group:
        """Return the paths of a group, which need not exist.

        Raises GroupNameError unless `name` is a valid name."""
        if not is_name(name) or name.casefold() == GLOBAL:
            hint = (
                "a group's name is 1 to 64 of the characters A-Z a-z 0-9 . _ -, does not "
                "begin with a dot"
            )
            raise GroupNameError(
                f"{name!r} is not a valid name for a group", f"{hint}, and is not {GLOBAL}"
            )
        return Group(self.root, name)

    def make(self) -> None:
        """Make the directories that all groups share. Raises OSError, OutsideGroupError."""
        make_private_dir(self.root)
        for directory in (
            self.store_dir,
            f"{self.groups_dir}/{GLOBAL}",
            self.root + "/data/sessions",
        ):
            make_private_dir(directory)
            check_steps(self.root, directory)


class Group:
    """The paths of one group.

    `root` is its agent's working directory; `home` is that agent's HOME."""

    def __init__(self, host: str, name: str) -> None:
        self.host = host
        self.name = name
        self.is_main = name == MAIN
        self.root = f"{host}/groups/{name}"
        self.instructions = self.root + "/CLAUDE.md"
        self.conversations_dir = self.root + "/conversations"
        self.home = f"{host}/data/sessions/{name}"
        self.config_dir = self.home + "/.claude"
        self.settings_file = self.config_dir + "/settings.json"
        self.ipc_dir = f"{host}/data/ipc/{name}"
        self.tasks_dir = self.ipc_dir + "/tasks"
        self.responses_dir = self.ipc_dir + "/responses"

    @property
    def runtime(self) -> Runtime:
        return runtime(RUNTIME)

    @property
    def memory_home(self) -> Home:
        """Return the group's directory as an agent home.

        Its sessions have names there and report each other's activity."""
        sessions_dir = f"{self.root}/{MEMORY_DIR}/{self.runtime.SESSIONS_FOLDER}"
        return home_at(self.root, os.environ, sessions_dir=sessions_dir, host=self.host)

    def transcript(self, session_id: str) -> str:
        """Return the path of the transcript of a session of the group, existing or not."""
        return self.runtime.transcript_path(self.config_dir, self.root, session_id)

    def settings(self) -> Settings:
        """Return the host's settings for the group; nothing that the group's agent can write."""
        return self.memory_home.settings()

    def make(self) -> None:
        """Make the group's directories, except conversations/.

        Raises OSError, OutsideGroupError."""
        directories = (
            self.root,
            self.config_dir,
            self.tasks_dir,
            self.responses_dir,
            self.memory_home.sessions_dir,
        )
        for directory in directories:
            make_private_dir(directory)
        self.check()

    def check(self) -> None:
        """Raise OutsideGroupError if a directory of the group is a link or is reached through
        one."""
        for directory in (self.root, self.config_dir, self.tasks_dir, self.responses_dir):
            check_steps(self.host, directory)
        for directory in (self.conversations_dir, self.memory_home.sessions_dir):
            if os.path.lexists(directory):
                check_steps(self.host, directory)


def open_below(directory: str, *names: str) -> int:
    """Return a descriptor for reading the regular file at `names`, a step each, below `directory`.

    No step follows a link, even one created meanwhile, or waits for a FIFO. Raises
    OutsideGroupError if it is not a regular file or leads elsewhere, FileNotFoundError."""
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise OutsideGroupError(f"{name!r} is not a file name")
    path = "/".join((directory, *names))
    try:
        return open_inside(directory, path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OutsideGroupError(f"{path}: {error.strerror or error}") from None


class HeldGroup:
    """A group's place while it is held. `project_dir` is '' if there are no transcripts yet."""

    def __init__(self, group: Group, project_dir: str, conversations_dir: str) -> None:
        self._group = group
        self._project_dir = project_dir
        self.conversations_dir = conversations_dir

    def transcript(self, session_id: str) -> str:
        """Return the path of a session's transcript; '' if there can be none."""
        name = os.path.basename(self._group.transcript(session_id))
        return self._project_dir and f"{self._project_dir}/{name}"


class HeldHome(Home):
    """A group's agent home while it is held.

    `project_dir` contains its transcripts; its settings are at the host."""

    def __init__(
        self, home: Home, sessions_dir: str, state_dir: str, cursors_dir: str, project_dir: str
    ) -> None:
        memory_dir = os.path.dirname(state_dir)
        super().__init__(
            home.root,
            memory_dir,
            home.root,
            sessions_dir=sessions_dir,
            rules_files=home.rules_files,
        )
        self.state_dir = state_dir
        self.log_file = f"{state_dir}/{os.path.basename(self.log_file)}"
        self.config_file = home.config_file
        self.compiled_file = home.compiled_file
        self.project_dir = project_dir
        self._cursors_dir = cursors_dir

    def cursor_file(self, session: str) -> str:
        return f"{self._cursors_dir}/{session}.json"


@contextmanager
def held(group: Group) -> Iterator[HeldGroup]:
    """Hold a group's place until the block ends.

    Raises OutsideGroupError if a part of it is a link."""
    with ExitStack() as stack:
        try:
            project_dir = stack.enter_context(
                pinned(group.host, os.path.dirname(group.transcript("x")))
            )
        except FileNotFoundError:
            project_dir = ""
        conversations_dir = stack.enter_context(
            pinned(group.host, group.conversations_dir, make=bool(project_dir))
        )
        yield HeldGroup(group, project_dir, conversations_dir)


@contextmanager
def held_home(group: Group) -> Iterator[HeldHome]:
    """Hold a group's agent home until the block ends.

    Raises OutsideGroupError if a part of it is a link, FileNotFoundError if it has no transcripts
    yet."""
    home = group.memory_home
    with ExitStack() as stack:
        project_dir = stack.enter_context(
            pinned(group.host, os.path.dirname(group.transcript("x")))
        )
        sessions_dir = stack.enter_context(pinned(group.host, home.sessions_dir, make=True))
        state_dir = stack.enter_context(pinned(group.host, home.state_dir, make=True))
        cursors_dir = stack.enter_context(
            pinned(group.host, os.path.dirname(home.cursor_file("x")), make=True)
        )
        yield HeldHome(home, sessions_dir, state_dir, cursors_dir, project_dir)
