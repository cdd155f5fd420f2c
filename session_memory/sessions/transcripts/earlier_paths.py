"""Paths that a repository had before it was moved or renamed, from notes.

A note has the repository's fingerprint. A move within a file system keeps the fingerprint; a copy
or clone gets another. A path that two repositories have used counts for neither."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.system.files import Opened, path_stamp, read_at, status_at, write_atomically
from ...common.system.git import Worktree, find_worktree, worktrees_of
from ...common.system.json import sealed
from ...common.text.secrets import find_secrets
from .projects import read_index

_SEVERAL = ""  # instead of a fingerprint
_LINE_BYTES = 1024


def note_repositories(notes_file: str, directories: Iterable[str], user_dir: str) -> None:
    """Note which repository is at the root of each directory's main worktree.

    Nothing is noted about a path that contains a secret. If the notes cannot be written, the next
    call tries again."""
    notes = read_index(notes_file)
    before = dict(notes)
    known: dict[str, Worktree | None] = {}
    for directory in directories:
        tree = find_worktree(directory, user_dir, known) if directory.startswith("/") else None
        if (
            tree
            and tree.root
            and tree.git_dir == tree.common_dir
            and (made := _fingerprint(tree.common_dir))
        ):
            notes[tree.root] = made if notes.get(tree.root, made) == made else _SEVERAL
    if notes == before:
        return
    new = [root for root in notes if root not in before and find_secrets(root)]
    for root in new:
        del notes[root]
    try:
        write_atomically(notes_file, sealed(notes))
    except OSError:
        pass


class EarlierPaths:
    """The `paths`, all gone now, at which the main worktree of `worktree`'s repository was."""

    def __init__(self, notes_file: str, worktree: Worktree) -> None:
        mains = [
            tree.root
            for tree in worktrees_of(worktree.common_dir)
            if tree.git_dir == worktree.common_dir
        ]
        self._root = (
            worktree.root if worktree.git_dir == worktree.common_dir else "".join(mains[:1])
        )
        notes = read_index(notes_file) if notes_file and self._root else {}
        made = _fingerprint(worktree.common_dir) if notes else ""
        self.paths = [
            path for path, noted in notes.items() if made and noted == made and _is_gone(path)
        ]

    def present(self, directory: str) -> str:
        """Return the current path of a directory that was in one of the paths; else the same
        path."""
        return _moved(directory, self.paths, self._root)


def present_directory(notes_file: str, directory: str) -> str:
    """Return a directory's current path if its repository moved to another noted path.

    Otherwise return the same path."""
    if not _is_gone(directory):
        return directory
    notes = read_index(notes_file)
    for path, made in notes.items():
        if made and _is_in(directory, path) and _is_gone(path):
            same = [
                root
                for root, noted in notes.items()
                if noted == made and _fingerprint(f"{root}/.git") == made
            ]
            return _moved(directory, [path], same[0]) if same else directory
    return directory


def _moved(directory: str, paths: list[str], root: str) -> str:
    return next(
        (root + directory[len(path) :] for path in paths if _is_in(directory, path)), directory
    )


def _is_in(directory: str, path: str) -> bool:
    return directory == path or directory.startswith(f"{path}/")


def _is_gone(path: str) -> bool:
    return status_at(path, follow_symlinks=False) is None


def _fingerprint(common_dir: str) -> str:
    """Return a text that identifies the repository; '' if its creation time is unknown.

    It has the inodes of its directories, and the time when git created it, because inodes are
    reused. It does not have the device number, which may change with a restart."""
    statuses = [status_at(path) for path in (common_dir, f"{common_dir}/objects")]
    made = _made(common_dir)
    if not made or None in statuses:
        return ""
    return " ".join([*[str(status.st_ino) for status in statuses if status], made])


def _made(common_dir: str) -> str:
    """Return when git created a repository.

    It is the time of a file that git writes then, else of the first move of HEAD."""
    inode, _, at = path_stamp(f"{common_dir}/description")
    if inode or at:
        return f"{inode}:{at}"
    try:
        with Opened(f"{common_dir}/logs/HEAD") as descriptor:
            words = (
                read_at(descriptor, 0, _LINE_BYTES)
                .partition(b"\t")[0]
                .decode("utf-8", "replace")
                .split()
            )
    except OSError:
        return ""
    return f"{words[1]}:{words[-2]}" if len(words) > 3 else ""
