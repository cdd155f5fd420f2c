"""The folders of transcripts of one project, kept in an index, and the sessions in them.

Runtimes keep a folder of transcripts for each start directory, or sort transcripts by date.
`project_folders` finds those of one repository once; a prompt only checks that the index is still
valid."""

from __future__ import annotations

from ...common.system.files import is_file, path_stamp, read_whole, real_path
from ...common.system.json import unsealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..runtimes.base import Folders, Runtime
    from .entries import Session
    from .old_sessions import OldSessions

    Places = list[tuple[Runtime, str]]  # runtimes, each with its own directory
    FoldersByRuntime = dict[str, Folders]  # by the names of the runtimes
    SubAgents = dict[str, list[str]]  # the transcripts of sub-agents by the ids of their sessions


_INDEX_PARTS = {
    "start": str,
    "places": dict,
    "common": str,
    "stamps": list,
    "folders": dict,
    "directories": dict,
    "sub_agents": dict,
}


class ProjectIndex:
    """The index of the project of sessions started in the directory `start`.

    It applies to the `places`, runtimes' directories by their names, as long as the paths with
    `stamps` have not changed; without places, a search was cut short. `common` is the directory
    that the repository's worktrees share. `directories` has the start directories of folders and
    transcripts that were looked into; for a sub-agent, a list with its session's id."""

    __slots__ = tuple(_INDEX_PARTS)
    VERSION = 1  # 0.4.2 wrote none; the form is the same

    def __init__(self, start: str = "", common: str = "") -> None:
        self.start = start
        self.common = common
        self.places: dict[str, str] = {}
        self.stamps: list[tuple[str, list[int]]] = []
        self.folders: FoldersByRuntime = {}
        self.directories: dict[str, str | list[str]] = {}
        self.sub_agents: SubAgents = {}

    @classmethod
    def load(cls, kept: dict[str, object]) -> ProjectIndex:
        """Return the index from a dump; a part of another type counts as empty, and so does the
        index of a later version."""
        index = cls()
        if kept.get("version", cls.VERSION) == cls.VERSION:
            for name, kind in _INDEX_PARTS.items():
                part = kept.get(name)
                if type(part) is kind:
                    setattr(index, name, part)
        return index

    def dump(self) -> dict[str, object]:
        """Return the stored form, which 0.4.2 reads too."""
        return {"version": self.VERSION, **{name: getattr(self, name) for name in self.__slots__}}


def kept_project(
    places: Places, start: str, index_file: str
) -> tuple[FoldersByRuntime, SubAgents] | None:
    """Return the indexed folders and sub-agents of the project of sessions started in `start`.

    Each folder has the name of its worktree ('' for the worktree of `start`). The sub-agents are
    those whose transcripts are among all sessions'. Return None if the index must be rebuilt."""
    index = ProjectIndex.load(read_sealed(index_file))
    try:
        if (
            index.start == start
            and index.places == {runtime.name: config_dir for runtime, config_dir in places}
            and all([path_stamp(path) == stamp for path, stamp in index.stamps])
        ):
            return index.folders, index.sub_agents
    except (TypeError, ValueError):
        pass
    return None


class FolderLists:
    """The lists of the recent sessions in folders with many transcripts (see `old_sessions`).

    `file_of` returns the file of a folder's list. `old` are the old sessions of the folders that
    were listed."""

    MANY = 500  # a folder with so many sessions has a list

    def __init__(
        self, file_of: Callable[[str], str], first_sight_seconds: float, now: float
    ) -> None:
        self.file_of = file_of
        self.first_sight_seconds = first_sight_seconds
        self.now = now
        self.old: list[OldSessions] = []

    def take(self, runtime: Runtime, folders: Folders, *, is_own: bool) -> Folders:
        """Take the old sessions of the folders with a list, and return the other folders."""
        left = []
        for folder, worktree in folders:
            old = None
            if is_file(self.file_of(folder)):
                from .old_sessions import ListFile

                old = ListFile(self, folder).old_sessions(runtime, worktree, is_own=is_own)
            if old is None:
                left.append((folder, worktree))
            else:
                self.old.append(old)
        return left

    def keep(self, sessions: Iterable[Session]) -> None:
        """Make the lists of folders with many of these sessions, unless there are lists.

        Raises OSError, ValueError."""
        from .old_sessions import ListFile

        counts: dict[str, int] = {}
        for session in sessions:
            folder = session.path.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
        listed = {old.folder for old in self.old}
        for folder, count in counts.items():
            if count >= self.MANY and folder not in listed:
                ListFile(self, folder).make()

    def note_active(self, transcript: str) -> None:
        """Note that a session's hook runs, if its folder has a list. Raises OSError."""
        folder, _, name = transcript.rpartition("/")
        if is_file(self.file_of(folder)):
            from .old_sessions import ListFile

            ListFile(self, folder).note_active(name)


def sessions_of(
    runtime: Runtime,
    config_dir: str,
    own_path: str | None,
    scope: str,
    folders: Folders,
    lists: FolderLists | None = None,
) -> list[Session]:
    """Return the sessions of a runtime in the `folders` of a project.

    `own_path` is None for a runtime other than the current session's: then each has its runtime,
    and a key that no session of the current runtime has. With `lists`, old sessions are left out,
    which are in the lists then."""
    sessions: list[Session] = []
    path = own_path or ""
    if lists is not None and runtime.LISTS_RECENT and scope == "project":
        own_dir, is_own, before = path.rpartition("/")[0], own_path is not None, len(lists.old)
        others = [pair for pair in folders if pair[0] != own_dir]
        folders = lists.take(runtime, others, is_own=is_own)
        if own_dir and not lists.take(runtime, [(own_dir, "")], is_own=is_own):
            path = ""
        sessions = [session for old in lists.old[before:] for session in old.recent()]
    more = runtime.other_sessions("", config_dir, path, scope, folders)
    for session in more if own_path is None else ():
        session.take_runtime(runtime)
    return sessions + more


def take_sub_agents(sessions: list[Session], sub_agents: SubAgents) -> None:
    """Give each of the sessions, perhaps of several runtimes, its sub-agents' transcripts."""
    for session in sessions:
        session.known_sub_agents = sub_agents.get(session.key.rpartition(":")[2], ())


def sessions_of_project(
    own_dir: str,
    folders: Folders,
    scope: str,
    all_folders: Iterable[str],
    sessions_in: Callable[..., list[Session]],
) -> list[Session]:
    """Return the sessions in the folder `own_dir` and in `folders`.

    With the scope `all`, also return the sessions in the others of `all_folders`, which is not read
    before. `sessions_in` returns a runtime's sessions in a folder."""
    sessions = sessions_in(own_dir) if own_dir else []
    for folder, worktree in folders:
        if folder != own_dir:
            sessions += sessions_in(folder, worktree=worktree)
    if scope == "all":
        of_project = {own_dir, *[folder for folder, _ in folders]}
        for folder in all_folders:
            if folder not in of_project:
                sessions += sessions_in(folder, is_elsewhere=True)
    return sessions


def is_of_namesake(runtime: Runtime, path: str, start: str, own_start: str, user_dir: str) -> bool:
    """Check if a session in the same folder belongs to another project.

    Its transcript is at `path`; it started in `start`, the current session in `own_start`. A
    runtime may give `/srv/my-app` and `/srv/my/app` folders with the same name."""
    if start == own_start or not (start.startswith("/") and own_start.startswith("/")):
        return False
    # the transcript was put there, or was moved
    if not runtime.is_folder_of(path.rpartition("/")[0], start):
        return False
    from ...common.system.git import find_worktree

    tree, own_tree = find_worktree(start, user_dir), find_worktree(own_start, user_dir)
    if tree is not None and own_tree is not None:
        return tree.common_dir != own_tree.common_dir
    # perhaps of a worktree that is gone
    if not runtime.is_folder_of(path.rpartition("/")[0], own_start):
        return False
    directory, project = (
        f"{real_path(start)}/",
        f"{real_path(own_tree.root if own_tree else own_start)}/",
    )
    return not (directory.startswith(project) or project.startswith(directory))


def read_sealed(path: str) -> dict[str, object]:
    """Return the object in a sealed file; empty if it cannot be read."""
    try:
        kept = unsealed(read_whole(path))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
