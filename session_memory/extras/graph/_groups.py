"""The groups of a graph: one for each project, which is a repository with all its worktrees."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING

from ...common.system.files import user_dir
from ...common.system.git import find_worktree, worktrees_of
from ...sessions.settings.homes import person_home
from ...sessions.transcripts.earlier_paths import EarlierPaths

if TYPE_CHECKING:
    from ...app.projects import Project

# no graph's name begins like this, so a project's group cannot be mistaken for one (see
# graph_name_of)
_BETWEEN = "__"
_NAME_CHARACTERS = 40


def group_of(graph_name: str, root: str) -> str:
    """Return the id of a project's group by its root; the graph's name for an unknown root."""
    if not root:
        return graph_name
    name = re.sub("[^A-Za-z0-9-]+", "-", os.path.basename(root))[:_NAME_CHARACTERS]
    checksum = sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{graph_name}{_BETWEEN}{name}-{checksum}"


def is_in_graph(group: str, graph_name: str) -> bool:
    """Check if a group belongs to a graph: several graphs may share one database."""
    return group == graph_name or group.startswith(graph_name + _BETWEEN)


def project_root(directory: str) -> str:
    """Return the root of the main worktree of a directory's repository.

    Outside a repository, return the directory; '' if it is unknown."""
    if not directory.startswith("/"):
        return ""
    worktree = find_worktree(directory, user_dir(os.environ))
    if worktree is None or not worktree.root:
        return directory.rstrip("/")
    trees = worktrees_of(worktree.common_dir)
    mains = [tree.root for tree in trees if tree.git_dir == worktree.common_dir and tree.root]
    return mains[0] if mains else worktree.root


def former_roots(directory: str) -> list[str]:
    """Return the earlier paths of a directory's repository, if it was moved or cloned again."""
    worktree = find_worktree(directory, user_dir(os.environ)) if directory[:1] == "/" else None
    notes = person_home(os.environ).repositories_file
    return EarlierPaths(notes, worktree).paths if worktree and worktree.root else []


class ProjectGroups:
    """The groups of one project, or of all projects if `project` is None."""

    def __init__(self, project: Project | None = None, directories: tuple[str, ...] = ()) -> None:
        self._text = project.text.casefold() if project else ""
        self._directories = directories
        self.is_everything = project is None

    def holds(self, group: str, graph_name: str) -> bool:
        """Check if a group of a graph is among them."""
        if self.is_everything:
            return True
        name = group[len(graph_name + _BETWEEN) :].casefold()
        is_named = bool(self._text) and self._text.rstrip("/").rpartition("/")[2] in name
        return is_named or group in [group_of(graph_name, root) for root in self._directories]
