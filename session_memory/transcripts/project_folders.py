"""Finding the folders of transcripts that belong to one project, and writing the index that prompts read them from."""

from __future__ import annotations

from time import time_ns

from ..system.files import open_regular, os, path_stamp, write_atomically
from ..system.git import find_worktree, worktrees_of
from ..system.json import sealed
from .cursor import RACY_NANOSECONDS
from .projects import read_index
from .reader import first_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtimes import Runtime
    from ..runtimes.contract import Folders
    from ..system.git import Worktree

MOST_TRANSCRIPTS = 8  # of a folder, in which its directory is looked for


def project_folders(runtime: Runtime, config_dir: str, start: str, user_dir: str) -> Folders:
    """The folders of the project of sessions that are started in `start`, each with the name of its worktree, '' for
    that of `start`. None at all where `start` is in no repository: then its own folder is all there is.

    `user_dir` is the person's home directory."""
    return _Search(runtime, config_dir, start, user_dir, {}).folders()


def keep_folders(runtime: Runtime, config_dir: str, start: str, user_dir: str, index_file: str) -> Folders:
    """The same, kept in the index, which also knows the worktrees that have been removed. Where it cannot be written,
    the folders are found anew at the next prompt."""
    search = _Search(runtime, config_dir, start, user_dir, read_index(index_file))
    folders = search.folders()
    index = {
        "start": start,
        "common": search.common_dir,
        "stamps": [[path, _settled(path_stamp(path))] for path in search.looked_at],
        "folders": folders,
    }
    try:
        write_atomically(index_file, sealed(index))
    except OSError:
        pass
    return folders


class _Search:
    """One search; `looked_at` are the paths that its result depends on."""

    def __init__(self, runtime: Runtime, config_dir: str, start: str, user_dir: str, before: dict[str, Any]) -> None:
        self._runtime = runtime
        self._config_dir = config_dir
        self._user_dir = user_dir
        self._own = find_worktree(start, user_dir) if start.startswith("/") else None
        self.common_dir = self._own.common_dir if self._own else ""
        self._before = before
        self.looked_at = [f"{config_dir}/{runtime.FILES.PROJECTS_FOLDER}", f"{start}/.git"]

    def folders(self) -> Folders:
        """The folders, each with the name of its worktree."""
        own = self._own
        if own is None:
            return []
        is_link = own.git_dir != f"{own.root}/.git"
        self.looked_at[1:] = [f"{own.root}/.git" if is_link else f"{own.git_dir}/config", f"{own.common_dir}/worktrees"]
        found = self._known_before()
        for root in {own.root, *[one.root for one in worktrees_of(own.common_dir)]} - {""}:
            for folder in self._runtime.FILES.folders_below(self._config_dir, root):
                worktree = self._worktree_of(folder)
                if worktree is not None and worktree.common_dir == own.common_dir:
                    found[folder] = "" if worktree.root == own.root else worktree.name
                elif worktree is not None:
                    found.pop(folder, None)
        return list(found.items())

    def _known_before(self) -> dict[str, str]:
        """The folders in the index of before, if that is of the same repository."""
        is_same = self._before.get("common") == self.common_dir
        return {folder: name for folder, name in self._before["folders"]} if is_same else {}

    def _worktree_of(self, folder: str) -> Worktree | None:
        """The worktree that the sessions of a folder were started in, by what their transcripts say."""
        sessions = self._runtime.FILES.sessions_in(folder)[:MOST_TRANSCRIPTS]
        for session in sessions:
            directory = self._directory_of(session.path)
            if directory:
                return find_worktree(directory, self._user_dir)
        # No session in it has said anything yet: it is looked at again as soon as one does.
        self.looked_at += [folder, *[session.path for session in sessions]]
        return None

    def _directory_of(self, path: str) -> str:
        try:
            descriptor = open_regular(path)
        except OSError:
            return ""
        try:
            return first_directory(self._runtime, descriptor)
        finally:
            os.close(descriptor)


def _settled(stamp: list[int]) -> list[int]:
    """`stamp`, or one that nothing has, where it is so young that another change may leave it as it is."""
    return stamp if time_ns() - stamp[2] > RACY_NANOSECONDS else [-1, 0, 0]
