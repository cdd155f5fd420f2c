"""Where transcripts are looked for: directories, and the files in them, each with the key by which the store knows it.

Plain classes, and little imported: where nothing is new, this is all that a command loads of the ingest.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from ...errors import SessionMemoryError
from ...system.confined_files import directory_below, open_inside
from ...system.files import open_regular, path_text, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Unreadable = list[tuple[str, Exception]]  # the keys of folders, each with a slash, and why

    from ...system.files import Stamp

SUFFIX, COMPRESSED = ".jsonl", ".zst"
FOREIGN = "no transcript: none of its lines is of a runtime that is known"  # why a file is not taken in
DEEPEST = 2  # <project>/<session>.jsonl, as most runtimes have it
_DIRECTORY_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class SourceDirectory:
    """A directory whose transcripts belong in the store, as those of the group `home` ('' without groups). It lies at
    `path`; the store knows it as `root`, which is the same as text.

    `within` limits it to these folders and keys of single files. A directory that `is_named`, in the configuration or
    on a command line, has to be there; a runtime's own comes with its first session. What lies in an `is_backup` never
    takes the place of the file that it is a copy of. Transcripts lie at most `deepest` levels below. No link is
    followed below `confined_to`, a directory above the root, where that is given: the files are an agent's, which may
    have put a link there. `refresh` brings mirrors up to date that lie there, and in `copies` those of transcripts that
    are compressed here. Elsewhere compressed ones are read themselves where that `is_asked_for` once, as for a backup.
    `place_of` says by its name where a transcript belongs that was moved here; '' where that does not tell.
    """

    def __init__(
        self, root: str, home: str = "", within: tuple[str, ...] | None = None, *, is_named: bool = False,
        is_backup: bool = False, is_asked_for: bool = False, confined_to: str = "", deepest: int = DEEPEST,
        refresh: Callable[[], None] | None = None, copies: str = "", place_of: Callable[[str], str] | None = None,
    ) -> None:  # fmt: skip
        self.path = root
        self.root = path_text(root)
        self.home = home
        self.within = None if within is None else tuple([path_text(name) for name in within])
        self._folders = tuple([f"{name}/" for name in self.within or ()])
        self.is_named = is_named
        self.is_backup = is_backup
        self.endings = (SUFFIX, SUFFIX + COMPRESSED) if is_asked_for else (SUFFIX,)
        self.confined_to = confined_to
        self.deepest = deepest
        self.copies = copies
        self._refresh = refresh
        self._place_of = place_of

    def holds(self, key: str) -> bool:
        """Whether a file of this key, there or not, belongs to it."""
        if not key.endswith(SUFFIX) or key.count("/") >= self.deepest:
            return False
        return self.within is None or key in self.within or key.startswith(self._folders)

    def is_expected(self) -> bool:
        """Whether the directory has to be there, or is, with the mirrors in it brought up to date."""
        if self._refresh:
            self._refresh()
        return self.is_named or os.path.isdir(self.path)

    def transcripts(self, unreadable: Unreadable | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """The path from here and the status of each transcript. Raises OSError where the root itself cannot be read,
        OutsideGroupError where a link leads to it from where it is confined to. `unreadable` gets each folder below
        that cannot be read, and each compressed transcript.

        A file's status takes less time from its open directory than by its path or from `scandir`: of 20,000 files
        60 ms, not 71.
        """
        if self.confined_to:
            with directory_below(self.confined_to, self.path):
                pass
        folders_left_out = [] if unreadable is None else unreadable
        if self.copies:
            from ...transcripts.mirror import unread

            folders_left_out += [(key, SessionMemoryError(why)) for key, why in unread(self.copies)]
        folders = [""]
        for folder in folders:
            path = f"{self.path}/{folder}"
            try:
                descriptor, names = _listing(path)
            except OSError as error:
                if not folder:
                    raise
                if not isinstance(error, FileNotFoundError) and self._may_hold(folder):
                    folders_left_out.append((path_text(folder), error))
                continue
            try:
                for name in names:
                    if name.endswith(self.endings):
                        inner = folder + name
                        status = _status(path + name if descriptor is None else name, descriptor)
                        is_held = self.within is None or self.holds(self._key(inner))
                        if status and S_ISREG(status.st_mode) and is_held:
                            yield inner, status
                    elif folder.count("/") < self.deepest - 1 and self._is_folder(path + name):
                        folders.append(f"{folder}{name}/")
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    def _may_hold(self, folder: str) -> bool:
        """Whether files in a folder may belong to it."""
        return self.within is None or any(f"{one}/".startswith(path_text(folder)) for one in self.within)

    def _is_folder(self, path: str) -> bool:
        return os.path.isdir(path) and not (self.confined_to and os.path.islink(path))

    def files(self, unreadable: Unreadable | None = None) -> list[SourceFile]:
        """Its transcripts, the oldest first, so that an original comes before its fork. As above."""
        found = [
            SourceFile(self, self._key(inner), f"{self.path}/{inner}", stamp_of(status))
            for inner, status in self.transcripts(unreadable)
        ]
        plain = {file.key for file in found if not file.is_compressed}
        wanted = [file for file in found if not file.is_compressed or file.key not in plain]
        return sorted(wanted, key=lambda file: (file.modified, file.key))

    def file_at(self, path: str) -> SourceFile | None:
        """One transcript by its path, which lies below the root; None if it is no file."""
        status = _status(path)
        key = self._key(os.path.relpath(path, self.path).replace(os.sep, "/"))
        return SourceFile(self, key, path, stamp_of(status)) if status else None

    def _key(self, inner: str) -> str:
        """The key of a transcript, by its path below here."""
        plain = inner.removesuffix(COMPRESSED) if inner.endswith(SUFFIX + COMPRESSED) else inner
        place = self._place_of(plain.rpartition("/")[2]) if self._place_of else ""
        return path_text(place or plain)


class SourceFile:
    """A transcript at `path`: `key` is its path relative to the directory's, as text, that of a compressed one without
    its last ending, that of one which was moved the one that it had; `stamp` is as in system.files."""

    def __init__(self, directory: SourceDirectory, key: str, path: str, stamp: Stamp) -> None:
        self.directory = directory
        self.key = key
        self.path = path
        self.stamp = stamp
        self.inode, self.size, self.modified = stamp  # in bytes; in milliseconds since the epoch

    @property
    def plain_path(self) -> str:
        """Its path, or, where it is compressed, what that was before."""
        return self.path.removesuffix(COMPRESSED)

    @property
    def is_compressed(self) -> bool:
        """Whether it has to be decompressed."""
        return self.path.endswith(COMPRESSED)

    @property
    def is_in_place(self) -> bool:
        """Whether it lies as what it is where its key says."""
        return path_text(self.path) == f"{self.directory.root}/{self.key}"

    def open(self) -> int:
        """A descriptor for reading it, of what it holds where it is compressed. Raises OSError, OutsideGroupError, and
        DamagedFileError or NoLibraryError where that cannot be read."""
        confined_to = self.directory.confined_to
        descriptor = open_inside(confined_to, self.path) if confined_to else open_regular(self.path)
        if not self.is_compressed:
            return descriptor
        from ...system.zstd import decompressed_file

        try:
            return decompressed_file(descriptor)
        finally:
            os.close(descriptor)


def told_roots(directories: Iterable[SourceDirectory]) -> list[str]:
    """Where transcripts lie, for people: those of copies only where there are any."""
    every = list(directories)
    copies = {one.copies for one in every}
    return [one.root for one in every if one.path not in copies or os.path.isdir(one.path)]


def _listing(path: str) -> tuple[int | None, list[str]]:
    """A descriptor of a directory, None where the system has none, and the names in it. Raises OSError."""
    if os.listdir not in os.supports_fd:  # Windows
        return None, os.listdir(path)
    descriptor = os.open(path, _DIRECTORY_FLAGS)
    try:
        return descriptor, os.listdir(descriptor)
    except OSError:
        os.close(descriptor)
        raise


def _status(path: str, directory: int | None = None) -> os.stat_result | None:
    """The status of a file, whose path may be one from an open directory; None if it is not there."""
    try:
        return os.stat(path, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None
