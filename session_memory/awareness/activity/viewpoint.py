"""Viewpoint: names files as git prints them where the reader of an update started."""

from __future__ import annotations

from ...common.system.files import real_path
from ...common.text.paths import relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...common.system.git import Worktree


class Viewpoint:
    """A session's start directory, `inside` its worktree if it is in one.

    The agent may change its directory at any time; a path from the start directory stays right. The
    files of git are read only when they are needed, and once."""

    __slots__ = ("_directory", "_kept", "_places", "_user_dir", "_worktree", "_worktrees")

    def __init__(self, directory: str, user_dir: str, worktree: Worktree | None = None) -> None:
        """`worktree` is the one of `directory` if that is known."""
        self._directory = directory
        self._user_dir = user_dir
        self._worktree = worktree
        self._worktrees: dict[str, Worktree | None] = {}  # by directory
        self._places: dict[str, tuple[str, str]] = {}  # by directory
        self._kept: tuple[str, str, str] | None = None

    @property
    def inside(self) -> str:
        """Return the directory relative to the root, such as `packages/web`; '' if it is the root."""
        return self._here[1]

    def shown(self, path: str) -> str:
        """Return a path without links as git prints it; unchanged outside the worktree."""
        root, inside, _ = self._here
        return relative(path, root, inside)

    def of(self, directory: str) -> tuple[str, str]:
        """Return the root for the files of a session that started in `directory`, and `inside` if
        that is a worktree of the reader's repository, else ''.

        Without a repository below the person's home directory, the root is the directory."""
        place = self._places.get(directory)
        if place is None:
            place, worktree = (directory, ""), self._find(directory)
            if worktree is not None and worktree.root:
                is_same = worktree.common_dir == self._here[2]
                place = _as_named(worktree.root, directory), self.inside if is_same else ""
            self._places[directory] = place
        return place

    @property
    def _here(self) -> tuple[str, str, str]:
        """The root without links, the directory inside it, and git's directory of the repository."""
        if self._kept is None:
            worktree = self._worktree or self._find(self._directory)
            directory = real_path(self._directory) if self._directory else ""
            root = (worktree.root if worktree else "") or directory
            inside = directory[len(root) + 1 :]
            self._kept = root, inside, worktree.common_dir if worktree else ""
        return self._kept

    def _find(self, directory: str) -> Worktree | None:
        from ...common.system.git import find_worktree

        return find_worktree(directory, self._user_dir, self._worktrees) if directory else None


def _as_named(root: str, directory: str) -> str:
    """Return the root of a directory's worktree with the links by which the directory names it."""
    inside = real_path(directory)[len(root) :]
    directory = directory.rstrip("/")
    return directory[: len(directory) - len(inside)] if directory.endswith(inside) else root
