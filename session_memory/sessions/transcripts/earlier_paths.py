"""Paths that a repository had before it was moved, renamed or cloned again, from notes.

A note has the repository's fingerprint. A move within a file system keeps the fingerprint; a copy
or clone gets another. A clone continues an earlier one if both have the same origin and the same
first commit, and the earlier one was gone when the new clone was first noted. So two clones that
existed at the same time stay two projects. A path that two repositories have used counts for
neither."""

from __future__ import annotations

from ...common.system.files import Opened, path_stamp, read_at, status_at, write_atomically
from ...common.system.git import Worktree, find_worktree, worktrees_of
from ...common.system.json import sealed
from ...common.text.secrets.redaction import find_secrets
from .projects import read_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SEVERAL = ""  # instead of a fingerprint
_LINE_BYTES = 1024
_PATIENCE_SECONDS = 5.0
_HOOK_SECONDS = 0.2


class RepositoryNote:
    """A note about the repository at a path.

    `fingerprint` is '' if several repositories were there. `origin` and `first_commit` are '' if
    unknown, and `name` is the linked worktree's, '' for the main one. `continues` has the paths of
    earlier clones."""

    def __init__(self, fingerprint: str = _SEVERAL, origin: str = "", name: str = "") -> None:
        self.fingerprint = fingerprint
        self.origin = origin
        self.first_commit = ""
        self.name = name
        self.continues: list[str] = []

    @staticmethod
    def load(value: object) -> RepositoryNote:
        """Return the note with this dump; a note by version 0.4 is only a fingerprint."""
        note = RepositoryNote()
        if isinstance(value, str):
            note.fingerprint = value
        elif isinstance(value, list) and len(value) == 5 and isinstance(value[4], list):
            texts = [str(part) for part in value[:4]]
            note.fingerprint, note.origin, note.first_commit, note.name = texts
            note.continues = [str(path) for path in value[4]]
        return note

    def dump(self) -> list[object]:
        """Return what `load` reads."""
        return [self.fingerprint, self.origin, self.first_commit, self.name, self.continues]

    def is_same_clone(self, other: RepositoryNote) -> bool:
        """Check if both are notes of one clone."""
        return bool(self.fingerprint) and self.fingerprint == other.fingerprint

    def may_continue(self, other: RepositoryNote) -> bool:
        """Check if the other is a different clone with the same origin."""
        is_known = bool(self.fingerprint and other.fingerprint and other.first_commit)
        return is_known and not self.is_same_clone(other) and self.origin == other.origin


class RepositoryNotes:
    """The notes in the file at `path`, by the paths of worktrees."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._before = read_sealed(path) if path else {}
        self.notes = {root: RepositoryNote.load(value) for root, value in self._before.items()}

    def add(self, tree: Worktree, seconds: float, *, is_whole: bool) -> RepositoryNote:
        """Note the repository of a worktree, and return the note.

        Git runs for at most this many seconds, and only if its answer matters or the note is
        `is_whole`. If git is too slow, a clone that may continue another one is not noted."""
        from ...common.system.git_identity import first_commit, origin_of  # late, for searches

        name = "" if tree.git_dir == tree.common_dir else tree.name
        new = RepositoryNote(_fingerprint(tree.common_dir), origin_of(tree.common_dir), name)
        known = self.notes.get(tree.root)
        if known and known.is_same_clone(new):
            new.continues, new.first_commit = known.continues, known.first_commit
            if is_whole and not new.first_commit:
                new.first_commit = first_commit(tree.git_dir, tree.common_dir, seconds)
        elif new.fingerprint:
            similar = [path for path, note in self.notes.items() if new.may_continue(note)]
            if is_whole or similar:
                new.first_commit = first_commit(tree.git_dir, tree.common_dir, seconds)
            if similar and not is_whole and not new.first_commit:
                return new
            if known and not _is_new_clone(new, known):
                new = RepositoryNote()
            self.notes.pop(tree.root, None)
            new.continues = [path for path in similar if self._is_continued(new, path)]
        if new.fingerprint or known:
            self.notes[tree.root] = new
        return new

    def _is_continued(self, new: RepositoryNote, path: str) -> bool:
        """Check if a new clone continues the one at a path.

        The earlier clone must be gone from there, and no other path may have it or continue
        it."""
        note = self.notes.get(path)
        return (
            note is not None
            and note.first_commit == new.first_commit
            and _is_gone(path)
            and not any(
                (other.is_same_clone(note) or path in other.continues) and not _is_gone(root)
                for root, other in self.notes.items()
            )
        )

    def paths_of(self, note: RepositoryNote) -> list[str]:
        """Return the earlier paths of a clone and of the clones it continues; all are gone now."""
        clones = [note, *[self.notes[path] for path in note.continues if path in self.notes]]
        return [
            path
            for path, noted in self.notes.items()
            if any(noted.is_same_clone(clone) for clone in clones)
            and _is_gone(path)
            and (noted.is_same_clone(note) or not self._is_elsewhere(noted))
        ]

    def _is_elsewhere(self, note: RepositoryNote) -> bool:
        """Check if a clone is at a noted path."""
        return any(
            other.is_same_clone(note) and not _is_gone(path) for path, other in self.notes.items()
        )

    def write(self) -> None:
        """Write the notes if they have changed.

        New notes about a path or an origin that contains a secret are left out. If the notes cannot
        be written, the next call tries again."""
        content = {root: note.dump() for root, note in self.notes.items()}
        new = {root: value for root, value in content.items() if self._before.get(root) != value}
        for root, value in new.items():
            if find_secrets(f"{root} {value[1]}"):
                del content[root]
        if new.keys() & content.keys():
            try:
                write_atomically(self._path, sealed(content))
            except OSError:
                pass


def note_repositories(notes_file: str, directories: Iterable[str], user_dir: str) -> None:
    """Note which repository is at the root of each directory's worktree.

    Nothing is noted about a path that contains a secret. If the notes cannot be written, the next
    call tries again."""
    notes = RepositoryNotes(notes_file)
    known: dict[str, Worktree | None] = {}
    trees: dict[str, Worktree] = {}
    for directory in directories:
        tree = find_worktree(directory, user_dir, known) if directory.startswith("/") else None
        if tree and tree.root:
            trees[tree.root] = tree
    for tree in trees.values():
        notes.add(tree, _PATIENCE_SECONDS, is_whole=True)
    notes.write()


class EarlierPaths:
    """The earlier `paths` of the worktrees of `worktree`'s repository; all are gone now.

    They include the paths of a clone that it continues. `is_complete` is False if git did not
    answer in time."""

    def __init__(self, notes_file: str, worktree: Worktree) -> None:
        """Note the repository too, if the file has any notes."""
        self._notes = RepositoryNotes(notes_file)
        trees = worktrees_of(worktree.common_dir)
        mains = [tree.root for tree in trees if tree.git_dir == worktree.common_dir]
        self._root = mains[0] if mains else worktree.root
        self._linked = {tree.name: tree.root for tree in trees if tree.root not in mains}
        self.paths: list[str] = []
        self.is_complete = True
        if self._notes.notes and worktree.root:
            note = self._notes.add(worktree, _HOOK_SECONDS, is_whole=False)
            self.is_complete = worktree.root in self._notes.notes
            self.paths = self._notes.paths_of(note)
            self._notes.write()

    def present(self, directory: str) -> str:
        """Return the current path of a directory that was in one of the paths; else the same path.

        A removed worktree's directory is now in the main one."""
        path = self._path_above(directory)
        root = self._linked.get(self._name_at(path), self._root) if path else ""
        return root + directory[len(path) :]

    def removed_worktree(self, directory: str) -> str:
        """Return the name of the removed worktree that contained a directory; '' for none."""
        name = self._name_at(self._path_above(directory))
        return "" if name in self._linked else name

    def _path_above(self, directory: str) -> str:
        return next((path for path in self.paths if _is_in(directory, path)), "")

    def _name_at(self, path: str) -> str:
        return self._notes.notes[path].name if path else ""


def present_directory(notes_file: str, directory: str) -> str:
    """Return a directory's current path if its repository moved, or was cloned again.

    Otherwise return the same path."""
    if not _is_gone(directory):
        return directory
    notes = RepositoryNotes(notes_file).notes
    path = next((path for path in notes if _is_in(directory, path) and _is_gone(path)), "")
    if path:
        for root, note in notes.items():
            clones = [
                note,
                *[
                    notes[root_continued]
                    for root_continued in note.continues
                    if root_continued in notes
                ],
            ]
            if (
                any(clone.is_same_clone(notes[path]) for clone in clones)
                and _fingerprint(f"{root}/.git") == note.fingerprint
            ):
                return root + directory[len(path) :]
    return directory


def _is_new_clone(new: RepositoryNote, known: RepositoryNote) -> bool:
    """Check if a path has a new clone of the repository that was there before."""
    is_same = bool(new.first_commit) and new.first_commit == known.first_commit
    return is_same and new.origin == known.origin


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
