"""Viewpoint: names files as git prints them where the reader of an update started."""

from __future__ import annotations

from ...common.system.files import real_path, status_at
from ...common.text.paths import relative


class Viewpoint:
    """A session's start directory, `inside` the worktree at `root`.

    Without a repository below the person's home directory, `root` is the directory itself. The
    agent may change its directory at any time; a path from the start directory stays right."""

    __slots__ = ("_directory", "root")

    def __init__(self, directory: str, user_dir: str) -> None:
        self._directory = directory
        self.root = _root_of(directory, user_dir)

    @property
    def inside(self) -> str:
        """Return the directory relative to the root, such as `packages/web`; '' if it is the root."""
        if self.root == self._directory.rstrip("/"):
            return ""
        return relative(real_path(self._directory), real_path(self.root))

    def shown(self, path: str) -> str:
        """Return a path without links as git prints it; unchanged outside the worktree."""
        return relative(path, real_path(self.root), self.inside)


def _root_of(directory: str, user_dir: str) -> str:
    """Return the root of a directory's repository.

    If there is none below the person's home directory, return the directory."""
    root = directory
    while root and root != user_dir:
        if status_at(root + "/.git") is not None:
            return root
        root = root.rpartition("/")[0]
    return directory
