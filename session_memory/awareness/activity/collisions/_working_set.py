"""Working set: the files that a session has read or edited and not released.

It is stored between the session's prompts.
"""

from __future__ import annotations

from ....common.system.files import real_path, status_at
from ....common.system.git import copied_to, find_worktree
from ....common.system.json import sealed, unsealed
from ....common.text.paths import ANY
from ..actions import COMMAND, EDIT, GIT, NAMED, READ, REMOVE, FileAction, is_read_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._evidence import Evidence

KEPT_ACTIONS = 4  # on one path, because the last ones may have been refused
MOST_PATHS = 400
MOST_OPEN = 100
MOST_DISCARDS = 50
# git commands that may discard edits, or give back those in a stash
_DISCARDING = frozenset(
    ("apply", "checkout", "clean", "read-tree", "reset", "restore", "stash", "switch")
)
MOST_REPORTED = 400
MOST_SUB_AGENTS = 400


class WorkingSet:
    """The last `actions` on each path, and the `commands` since the last update.

    `updated` is the time of that update. `discards` are the git commands, also from before it, that
    may have discarded edits of the set. CollisionState stores the set."""

    __slots__ = ("actions", "commands", "discards", "updated")

    def __init__(self, updated: float = 0.0) -> None:
        self.updated = updated
        self.actions: dict[str, list[FileAction]] = {}
        self.commands: list[FileAction] = []
        self.discards: list[FileAction] = []

    def add(self, actions: Iterable[FileAction]) -> None:
        """Add later actions."""
        for action in actions:
            if action.kind == NAMED or (action.is_doubtful and action.kind in (EDIT, REMOVE)):
                continue
            if action.kind in (EDIT, READ):
                kept = [*self.actions.pop(action.path, ()), action]
                # drop the oldest action of the more frequent kind, so both kinds remain
                if len(kept) > KEPT_ACTIONS:
                    edits = sum([action.kind == EDIT for action in kept])
                    more = EDIT if 2 * edits > len(kept) else READ
                    kept.remove(next(action for action in kept if action.kind == more))
                self.actions[action.path] = kept
            elif action.kind == REMOVE:
                for path in self.reached_by(action):
                    del self.actions[path]
            else:
                self.commands.append(action)
                if action.kind == GIT and _DISCARDING.intersection(action.words[:1]):
                    self.discards.append(action)

    def limit(self, paths: Iterable[str]) -> None:
        """Drop all other paths."""
        self.actions = {path: self.actions[path] for path in paths if path in self.actions}

    def last(
        self, path: str, evidence: Evidence, kinds: tuple[str, ...] = (EDIT, READ)
    ) -> FileAction | None:
        """Return the last action on a path that was not refused; None if there is none."""
        for action in reversed(self.actions.get(path, ())):
            if action.kind in kinds and evidence.is_done("", action):
                return action
        return None

    def has_read(self, path: str, since: float, evidence: Evidence) -> bool:
        """Check if this session has read a file since a time, perhaps by printing it."""
        reads = [
            action
            for action in self.actions.get(path, ())
            if action.kind == READ and action.time >= since
        ]
        if any([evidence.is_done("", action) for action in reads]):
            return True
        from ....common.text.shell_commands import prints

        later = [
            action for action in self.commands if action.kind == COMMAND and action.time >= since
        ]
        return any(
            [prints(command.words[0], path) and evidence.is_done("", command) for command in later]
        )

    def reached_by(self, action: FileAction) -> list[str]:
        """Return the paths that an action affects: its own, or all below a removed directory."""
        if action.path in self.actions:
            return [action.path]
        if action.kind == REMOVE:
            return [path for path in self.actions if path.startswith(action.path + "/")]
        return []

    def is_concerned_by(self, action: FileAction) -> bool:
        """Check if an action of another session concerns the set.

        It does if it changes a file of the set, or is a changing git command."""
        if action.kind in (READ, COMMAND, NAMED):
            return False
        if action.kind == GIT:
            return bool(action.words) and not is_read_only(action.words)
        return bool(self.reached_by(action))


class CollisionState:
    """The state of one session between its prompts.

    It has its `working_set`, the `reported` facts (each with the time of this session's action
    then), the `open_actions` of each other session (those without a result so far), and the
    `sub_agents`' transcripts with the offsets up to which they were read."""

    __slots__ = ("open_actions", "reported", "sub_agents", "working_set")
    VERSION = 1  # 0.4.2 wrote no version; the form is the same

    def __init__(self, updated: float = 0.0) -> None:
        """`updated` is the time of the last update."""
        self.working_set = WorkingSet(updated)
        self.reported: dict[str, float] = {}
        self.open_actions: dict[str, list[FileAction]] = {}
        self.sub_agents: dict[str, int] = {}

    @classmethod
    def load(cls, content: str, updated: float) -> CollisionState:
        """Return the state from a dump; `updated` is the time of the last update.

        Content that cannot be read, or that a later version wrote, counts as missing."""
        state = cls(updated)
        try:
            kept = unsealed(content.encode())
            if kept.get("version", 1) == cls.VERSION:
                state._load(kept)
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(updated)
        return state

    def dump(self) -> str:
        """Return the state as a text to store: 0.4.2 reads it too."""
        kept = list(self.working_set.actions.values())[-MOST_PATHS:]
        open_actions = {
            key: [action.dump() for action in actions[-MOST_OPEN:]]
            for key, actions in self.open_actions.items()
        }
        content = {
            "version": self.VERSION,
            "touched": [action.dump() for actions in kept for action in actions],
            "discards": [action.dump() for action in self._discards_of(kept)],
            "told": dict(list(self.reported.items())[-MOST_REPORTED:]),
            "open": open_actions,
            "sub_agents": dict(list(self.sub_agents.items())[-MOST_SUB_AGENTS:]),
        }
        return sealed(content).decode()

    def _discards_of(self, kept: list[list[FileAction]]) -> list[FileAction]:
        """Return the last git commands that may have discarded an edit among the kept actions."""
        edits = [action.time for actions in kept for action in actions if action.kind == EDIT]
        since = min(edits, default=float("inf"))
        discards = [action for action in self.working_set.discards if action.time > since]
        return discards[-MOST_DISCARDS:]

    def _load(self, kept: dict[str, Any]) -> None:
        self.working_set.add([FileAction.load(fields) for fields in kept["touched"]])
        self.working_set.discards = [FileAction.load(fields) for fields in kept.get("discards", ())]
        self.reported = {str(key): float(time) for key, time in kept["told"].items()}
        self.open_actions = {
            str(key): [FileAction.load(fields) for fields in actions]
            for key, actions in kept["open"].items()
        }
        self.sub_agents = {str(path): int(offset) for path, offset in kept["sub_agents"].items()}


class KnownFiles:
    """Recognises the files of a working set by other paths, for example through a symlink."""

    def __init__(self, paths: Iterable[str], user_dir: str = "") -> None:
        self._user_dir = user_dir
        self.names: dict[str, list[str]] = {}  # the paths by the last part of each
        self._paths = set(paths)
        self._by_inode: dict[str, dict[tuple[int, int], str]] = {}  # for each last part of a path
        for path in self._paths:
            self.names.setdefault(path.rpartition("/")[2], []).append(path)

    def edits_by(self, action: FileAction) -> list[FileAction]:
        """Return a doubtful edit of each file that a NAMED action may have written, else []."""
        if action.kind != NAMED:
            return []
        edits = []
        for path in self._paths if action.path == ANY else self.names.get(action.path, ()):
            place = (action.time, action.offset, action.call_id)
            edits.append(
                FileAction(
                    EDIT,
                    path,
                    place,
                    is_command=True,
                    transcript=action.transcript,
                    is_doubtful=True,
                )
            )
            edits[-1].command = action.command
        return edits

    def recognise(self, action: FileAction) -> None:
        """Replace the path of an action by its file's path in the working set.

        The file may also be a copy in another worktree of the repository. Only files with the same
        name are compared on disk."""
        path, name = action.path, action.path.rpartition("/")[2]
        if path in self._paths or name not in self.names:
            return
        if name not in self._by_inode:
            statuses = [(status_at(known), known) for known in self.names[name]]
            self._by_inode[name] = {
                (status.st_ino, status.st_dev): known for status, known in statuses if status
            }
        status = status_at(path)
        known = self._by_inode[name].get((status.st_ino, status.st_dev)) if status else None
        if known is not None:
            action.path = known
        elif action.kind == EDIT and (copies := copied_to(path, self.names[name], self._user_dir)):
            worktree = find_worktree(path.rpartition("/")[0], self._user_dir)
            action.path, action.copy, action.worktree = (
                copies[0],
                path,
                worktree.name if worktree else "",
            )


def resolve_symlinks(actions: Iterable[FileAction]) -> None:
    """Replace the directories of the actions by their real paths, as git stores them."""
    real: dict[str, str] = {}
    for action in actions:
        directory, slash, name = action.path.rpartition("/")
        if directory:
            if directory not in real:
                real[directory] = real_path(directory).rstrip("/")
            action.path = real[directory] + slash + name
