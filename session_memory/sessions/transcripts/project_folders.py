"""Finds the folders of transcripts of one project, and writes the index that prompts read."""

from __future__ import annotations

from ...common.system.deadline import DeadlineError
from ...common.system.files import Opened, is_file, write_atomically
from ...common.system.git import Worktree, find_worktree, worktrees_of
from ...common.system.json import sealed
from ...common.text.secrets.redaction import find_secrets
from .entries import Entry
from .lines import first_line, settled_stamp
from .projects import ProjectIndex, read_sealed
from .reader import first_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.base import Runtime
    from .earlier_paths import EarlierPaths
    from .projects import FoldersByRuntime, Places, SubAgents

MOST_TRANSCRIPTS = 8  # of a folder, searched for the directory of its sessions


def project_folders(
    places: Places, start: str, user_dir: str, notes_file: str = ""
) -> FoldersByRuntime:
    """Return the folders of the project of sessions started in `start`, by runtime name.

    Each has the name of its worktree ('' for the worktree of `start`). If `start` is in no
    repository, it is the project itself. The runtimes share an index, independent of their order.
    `user_dir` is the person's home directory; `notes_file` has the earlier paths of the repository.
    """
    return _Search(places, start, user_dir, ProjectIndex(), notes_file).folders()


def keep_project(
    places: Places, start: str, user_dir: str, index_file: str, notes_file: str = ""
) -> tuple[FoldersByRuntime, SubAgents]:
    """Find a project's folders and its sub-agents among all sessions, and write the index.

    The index also keeps removed worktrees, and the start directory of each transcript outside the
    project's folders. If it cannot be written, or a directory's name contains a secret, the next
    prompt searches again. A search cut short by the deadline continues there."""
    before = ProjectIndex.load(read_sealed(index_file))
    search = _Search(places, start, user_dir, before, notes_file)
    index = ProjectIndex(start, search.common_dir)
    try:
        index.folders = search.folders()
    except DeadlineError:
        index.folders = before.folders
        index.directories = {**search.directories, **search.found}
        _write(index_file, index)
        raise
    index.places = {runtime.name: config_dir for runtime, config_dir in places}
    index.stamps = [(path, settled_stamp(path)) for path in search.looked_at]
    index.directories, index.sub_agents = search.directories, search.sub_agents()
    _write(index_file, index)
    return index.folders, index.sub_agents


def _write(index_file: str, index: ProjectIndex) -> None:
    """Write the index, unless the name of a directory in it contains a secret."""
    content = sealed(index.dump())
    if find_secrets(content.decode()):
        return
    try:
        write_atomically(index_file, content)
    except OSError:
        pass


class _Search:
    """One search for the folders of a project.

    `before` is the index of the previous search, and `looked_at` has the paths whose changes make
    the result outdated. `found` has the start directory of each folder; a search that was cut short
    continues with it. `directories` has the start directory of each transcript that is in no
    project's folder; for a transcript of a sub-agent, it has the id of the session, in a list."""

    def __init__(
        self, places: Places, start: str, user_dir: str, before: ProjectIndex, notes_file: str
    ) -> None:
        self._places = places
        self._start = start
        self._user_dir = user_dir
        self._own = find_worktree(start, user_dir) if start.startswith("/") else None
        self._worktrees: dict[str, Worktree | None] = {}
        self._worktrees_above: dict[str, Worktree | None] = {}
        self._notes_file = notes_file
        self._earlier = _earlier_paths(notes_file, self._own) if self._own else None
        self.common_dir = self._own.common_dir if self._own else ""
        self._before = before
        self.found: dict[str, str | list[str]] = {}
        self._root_folders: set[str] = set()
        self.directories: dict[str, str | list[str]] = {}
        self.looked_at: list[str] = []

    def folders(self) -> FoldersByRuntime:
        """Return the folders by the names of the runtimes, each with the name of its worktree."""
        worktree = self._own
        roots = {self._start}
        if worktree is None:
            self.looked_at = [f"{self._start}/.git"]
        else:
            is_link = worktree.git_dir != f"{worktree.root}/.git"
            self.looked_at = [
                f"{worktree.root}/.git" if is_link else f"{worktree.git_dir}/config",
                f"{worktree.common_dir}/worktrees",
            ]
            earlier = self._earlier.paths if self._earlier else []
            self.looked_at += earlier  # another repository may be created there
            if self._earlier and not self._earlier.is_complete:
                self.looked_at.append(self._notes_file)
            roots = {
                worktree.root,
                *[tree.root for tree in worktrees_of(worktree.common_dir)],
                *earlier,
            } - {""}
        return {
            runtime.name: self._folders_of(runtime, config_dir, roots)
            for runtime, config_dir in self._places
        }

    def _folders_of(
        self, runtime: Runtime, config_dir: str, roots: set[str]
    ) -> list[tuple[str, str]]:
        self.looked_at += runtime.listed_dirs(config_dir)
        if self._own is None and runtime.HAS_PROJECT_FOLDERS:
            return [(runtime.project_dir(config_dir, self._start), "")]
        # as the index of before
        is_same = self._own is not None and self._before.common == self.common_dir
        worktrees: dict[str, str] = (
            dict(self._before.folders.get(runtime.name, ())) if is_same else {}
        )
        if runtime.HAS_PROJECT_FOLDERS:
            self._root_folders = {runtime.project_dir(config_dir, root) for root in roots}
        for folder in runtime.folders_below(config_dir, *roots):
            directory = self._directory_of_folder(runtime, folder)
            if isinstance(directory, str) and directory:
                worktree = self._worktree_name(directory)
                if worktree is not None:
                    worktrees[folder] = worktree
                elif self._own is None or self._worktrees[directory] is not None:
                    worktrees.pop(folder, None)
        return list(worktrees.items())

    def _worktree_name(self, directory: str) -> str | None:
        """Return the project's worktree that contains a directory; None outside.

        It is '' for the worktree of `start`."""
        own_worktree = self._own
        if own_worktree is None:
            return "" if directory == self._start else None
        if directory not in self._worktrees:
            present = self._earlier.present(directory) if self._earlier else directory
            self._worktrees[directory] = find_worktree(
                present, self._user_dir, self._worktrees_above
            )
        worktree = self._worktrees[directory]
        if worktree is None or worktree.common_dir != own_worktree.common_dir:
            return None
        removed = self._earlier.removed_worktree(directory) if self._earlier else ""
        if removed:
            return removed
        return "" if worktree.root == own_worktree.root else worktree.name

    def sub_agents(self) -> SubAgents:
        """Return the sub-agents' transcripts among those of all sessions, by session id."""
        transcripts_by_session: SubAgents = {}
        for path, directory in self.directories.items():
            if isinstance(directory, list):
                transcripts_by_session.setdefault(directory[0], []).append(path)
        return transcripts_by_session

    def _directory_of_folder(self, runtime: Runtime, folder: str) -> str | list[str]:
        """Return the start directory of a folder's sessions, or of a transcript, from its content.

        Return '' if it is unknown, and a list if the transcript is a sub-agent's."""
        is_one = not runtime.HAS_PROJECT_FOLDERS
        directory_by_place = self.directories if is_one else self.found
        if self._before.directories.get(folder):
            directory_by_place[folder] = self._before.directories[folder]
            return directory_by_place[folder]
        sessions = runtime.sessions_in(folder)[:MOST_TRANSCRIPTS]
        directories = []
        for session in sessions:
            if directory := _directory_of(runtime, session.path):
                directories.append(directory)
                # Another project's directory may have a folder with the same name.
                if (
                    folder not in self._root_folders
                    or self._worktree_name(str(directory)) is not None
                ):
                    break
        if directories:
            is_of_project = (
                folder in self._root_folders
                and self._worktree_name(str(directories[-1])) is not None
            )
            directory_by_place[folder] = directories[-1] if is_of_project else directories[0]
            return directory_by_place[folder]
        # no session in it has a message yet, so it is checked again later
        self.looked_at += {folder, *[session.path for session in sessions]}
        return ""


def _earlier_paths(notes_file: str, worktree: Worktree) -> EarlierPaths | None:
    """Return the earlier paths of a repository; None if nothing was noted of any."""
    if not is_file(notes_file):
        return None
    from .earlier_paths import EarlierPaths  # imported late: a first prompt does without it

    return EarlierPaths(notes_file, worktree)


def _directory_of(runtime: Runtime, path: str) -> str | list[str]:
    """Return a session's start directory, '' if unknown; for a sub-agent, a list with its session's
    id."""
    try:
        with Opened(path) as descriptor:
            branch = runtime.records.open_transcript(first_line(descriptor))
            if branch is None:
                return first_directory(runtime, descriptor)
            if branch.is_of_subagent:
                return [branch.of_session]
            beginning = Entry("user", "")
            branch.complete(beginning)
            return beginning.cwd or first_directory(runtime, descriptor)
    except OSError:
        return ""
