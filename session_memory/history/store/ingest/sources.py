"""The directories in which transcripts are found, and their files with their keys in the store.

These are plain classes with few imports: if nothing is new, a command loads no other part of the
ingest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from stat import S_ISREG

from ....common.errors import SessionMemoryError
from ....common.system.files import Closing, Stamp, open_regular, path_text, stamp_of
from ....sessions.confined_files import directory_below, open_inside
from ....sessions.runtimes.base import Runtime

Unreadable = list[tuple[str, Exception]]  # the keys of folders, each with a slash, and the reason

SUFFIX, COMPRESSED = ".jsonl", ".zst"
# the reason why a file is skipped
FOREIGN = "not a transcript: no line of it is in the format of a known runtime"
DEEPEST = 2  # <project>/<session>.jsonl, as most runtimes have it


class SourceDirectory:
    """A directory with transcripts for the store of the home called `home` ('' for a single home).

    - `root` is its path as text, which is its key in the store; `path` is the same as a path.
    - `within` limits it to some folders, and to the keys of single files.
    - If it `is_named` in the configuration or on a command line, it must exist. A runtime's own
      directory may appear later, with the first session.
    - If it `is_backup`, none of its files replaces the original of its session.
    - Transcripts are at most `deepest` levels below it.
    - Below `confined_to`, a directory above it, no symlink is followed, because an agent may have
      made it.
    - `refresh` updates the mirrors in it. `copies` has mirrors of its compressed transcripts. If it
      `is_asked_for`, as for a backup, compressed transcripts are read without a mirror.
    - `origin` is the runtime and the runtime's directory, if all transcripts are from there.
    - `place_of` returns the original path of a moved transcript by its name; '' if unknown.
    - With a `project`, all sessions count as sessions of that directory, because the transcripts
      may name directories of another machine."""

    def __init__(
        self,
        root: str,
        home: str = "",
        within: tuple[str, ...] | None = None,
        *,
        is_named: bool = False,
        is_backup: bool = False,
        is_asked_for: bool = False,
        confined_to: str = "",
        deepest: int = DEEPEST,
        refresh: Callable[[], None] | None = None,
        copies: str = "",
        place_of: Callable[[str], str] | None = None,
        origin: tuple[Runtime, str] | None = None,
    ) -> None:
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
        self.origin = origin
        self.project = ""
        # a command that needs the transcripts' statuses again collects them here, by path
        self.statuses: dict[str, os.stat_result] | None = None
        self._refresh = refresh
        self._place_of = place_of

    def holds(self, key: str) -> bool:
        """Check if a file with this key belongs to the directory, whether or not it exists."""
        if not key.endswith(SUFFIX) or key.count("/") >= self.deepest:
            return False
        return self.within is None or key in self.within or key.startswith(self._folders)

    def wider_key(self, root: str, key: str) -> str:
        """Return the key here of a file with a key below `root`, a directory in this one.

        It is '' if `root` is not below this directory, or the file too deep."""
        whole, inner = os.path.realpath(self.path), os.path.realpath(root)
        if not inner.startswith(f"{whole}/"):
            return ""
        wider = f"{path_text(inner[len(whole) + 1 :])}/{key}"
        return wider if wider.count("/") < self.deepest else ""

    def is_expected(self) -> bool:
        """Check if the directory must exist or does exist, and update the mirrors in it."""
        if self._refresh:
            self._refresh()
        return self.is_named or os.path.isdir(self.path)

    def transcripts(
        self, unreadable: Unreadable | None = None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path (relative to the directory) and the status of each transcript.

        `unreadable` gets each unreadable folder and each compressed transcript. Raises OSError if
        the root cannot be read, OutsideGroupError if a symlink leads out of `confined_to`."""
        if self.confined_to:
            with directory_below(self.confined_to, self.path):
                pass
        folders_left_out = [] if unreadable is None else unreadable
        if self._refresh:
            from ....sessions.transcripts.mirror import unread

            left_out = unread(self.copies or self.path)
            folders_left_out += [(key, SessionMemoryError(why)) for key, why in left_out]
        folders = [""]
        for folder in folders:
            try:
                entries = os.scandir(f"{self.path}/{folder}")
            except OSError as error:
                if not folder:
                    raise
                if self._may_have_transcripts(folder) and not isinstance(error, FileNotFoundError):
                    folders_left_out.append((path_text(folder), error))
                continue
            with entries:
                yield from self._transcripts_in(folder, entries, folders)

    def _transcripts_in(
        self, folder: str, entries: Iterable[os.DirEntry[str]], folders: list[str]
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the transcripts among the entries of a folder, and add its folders to `folders`."""
        for entry in entries:
            if entry.name.endswith(self.endings):
                inner = folder + entry.name
                status = _status(entry.path)
                is_held = self.within is None or self.holds(self._key(inner))
                if status and S_ISREG(status.st_mode) and is_held:
                    if self.statuses is not None:
                        self.statuses[entry.path] = status
                    yield inner, status
            elif folder.count("/") < self.deepest - 1 and self._is_folder(entry.path):
                folders.append(f"{folder}{entry.name}/")

    def _may_have_transcripts(self, folder: str) -> bool:
        if self.within is None:
            return True
        return any(f"{key}/".startswith(path_text(folder)) for key in self.within)

    def _is_folder(self, path: str) -> bool:
        return os.path.isdir(path) and not (self.confined_to and os.path.islink(path))

    def files(self, unreadable: Unreadable | None = None) -> list[SourceFile]:
        """Return the transcripts, the oldest first, so an original comes before its fork.

        Raises as `transcripts` does."""
        files = [
            SourceFile(self, self._key(inner), f"{self.path}/{inner}", stamp_of(status))
            for inner, status in self.transcripts(unreadable)
        ]
        plain = {file.key for file in files if not file.is_compressed}
        wanted = [file for file in files if not file.is_compressed or file.key not in plain]
        return sorted(wanted, key=lambda file: (file.modified, file.key))

    def file_at(self, path: str) -> SourceFile | None:
        """Return one transcript by its path below the root; None if it is not a file."""
        status = _status(path)
        key = self._key(os.path.relpath(path, self.path).replace(os.sep, "/"))
        return SourceFile(self, key, path, stamp_of(status)) if status else None

    def _key(self, inner: str) -> str:
        plain = inner.removesuffix(COMPRESSED) if inner.endswith(SUFFIX + COMPRESSED) else inner
        place = self._place_of(plain.rpartition("/")[2]) if self._place_of else ""
        return path_text(place or plain)


class SourceFile:
    """A transcript at `path`.

    `key` is its path relative to the directory, as text. The key of a compressed file lacks the
    last extension; the key of a moved file is its original key. `stamp` is as in system.files."""

    __slots__ = ("directory", "key", "path", "stamp")  # there may be 20,000

    def __init__(self, directory: SourceDirectory, key: str, path: str, stamp: Stamp) -> None:
        self.directory = directory
        self.key = key
        self.path = path
        self.stamp = stamp

    @property
    def inode(self) -> int:
        return self.stamp[0]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.stamp[1]

    @property
    def modified(self) -> int:
        """The time of the last change, in milliseconds since 1970."""
        return self.stamp[2]

    @property
    def plain_path(self) -> str:
        return self.path.removesuffix(COMPRESSED)

    @property
    def is_compressed(self) -> bool:
        return self.path.endswith(COMPRESSED)

    @property
    def named_path(self) -> str:
        """The path that the file's key names, as text."""
        return f"{self.directory.root}/{self.key}"

    @property
    def is_in_place(self) -> bool:
        """Check if the file is uncompressed and at the path that its key names."""
        return path_text(self.path) == self.named_path

    def open(self) -> int:
        """Return a descriptor for reading the file, decompressed.

        Raises OSError, OutsideGroupError, and DamagedFileError or NoLibraryError if it cannot be
        decompressed."""
        confined_to = self.directory.confined_to
        descriptor = open_inside(confined_to, self.path) if confined_to else open_regular(self.path)
        if not self.is_compressed:
            return descriptor
        from ....common.system.zstd import decompressed_file

        with Closing(descriptor):
            return decompressed_file(descriptor)


def told_roots(directories: Iterable[SourceDirectory]) -> list[str]:
    """Return the directories of transcripts, as shown to people.

    Directories of our copies are included only if they exist."""
    every = list(directories)
    copies = {directory.copies for directory in every}
    return [
        directory.root
        for directory in every
        if directory.path not in copies or os.path.isdir(directory.path)
    ]


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
