"""Where transcripts are looked for: directories, and the files in them, each with the key by which the store knows it.

Plain classes, and little imported: where nothing is new, this is all that a command loads of the ingest.
"""

from __future__ import annotations

import os

from ...system.confined_files import directory_below, open_inside
from ...system.files import open_regular, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...system.files import Stamp

SUFFIX = ".jsonl"
DEEPEST = 2  # <project>/<session>.jsonl; what lies deeper belongs to sub-agents


class SourceDirectory:
    """A directory whose transcripts belong in the store, as those of the group `home` ('' without groups).

    `within` limits it to these folders and keys of single files. A directory that `is_named`, in the configuration or
    on a command line, has to be there; a runtime's own comes with its first session. What lies in an `is_backup` never
    takes the place of the file that it is a copy of. No link is followed below `confined_to`, a directory above the
    root, where that is given: the files are an agent's, which may have put a link there.
    """

    def __init__(
        self, root: str, home: str = "", within: tuple[str, ...] | None = None, *, is_named: bool = False,
        is_backup: bool = False, confined_to: str = "",
    ) -> None:  # fmt: skip
        self.root = root
        self.home = home
        self.within = within
        self.is_named = is_named
        self.is_backup = is_backup
        self.confined_to = confined_to

    def holds(self, key: str) -> bool:
        """Whether a file of this key, there or not, belongs to it."""
        if not key.endswith(SUFFIX) or key.count("/") >= DEEPEST:
            return False
        return self.within is None or key in self.within or key.partition("/")[0] in self.within

    def is_expected(self) -> bool:
        """Whether the directory has to be there, or is."""
        return self.is_named or os.path.isdir(self.root)

    def listings(self) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """The transcripts of each folder, as directory entries, with what their keys begin with: `<folder>/`, or ''.

        Raises OSError where the root itself cannot be read, OutsideGroupError where a link leads to it from where it is
        confined to. What cannot be read below is left out.
        """
        if self.confined_to:
            with directory_below(self.confined_to, self.root):
                pass
        follows_links = not self.confined_to
        folders = [""]
        for folder in folders:
            try:
                with os.scandir(f"{self.root}/{folder}") as listing:
                    entries = list(listing)
            except OSError:
                if folder:
                    continue
                raise
            if not folder:
                folders += [f"{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=follows_links)]
            found = [entry for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False)]
            if self.within is not None:
                found = [entry for entry in found if self.holds(folder + entry.name)]
            yield folder, found

    def files(self) -> list[SourceFile]:
        """Its transcripts, the oldest first, so that an original comes before its fork. Raises as `listings` does."""
        found = [
            SourceFile(self, folder + entry.name, entry.path, stamp_of(entry.stat(follow_symlinks=False)))
            for folder, entries in self.listings()
            for entry in entries
        ]
        return sorted(found, key=lambda file: (file.modified, file.key))

    def file_at(self, path: str) -> SourceFile | None:
        """One transcript by its path, which lies below the root; None if it is no file."""
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return None
        key = os.path.relpath(path, self.root).replace(os.sep, "/")
        return SourceFile(self, key, path, stamp_of(status))


class SourceFile:
    """A transcript: `key` is its path relative to the directory's root; `stamp` is as in system.files."""

    def __init__(self, directory: SourceDirectory, key: str, path: str, stamp: Stamp) -> None:
        self.directory = directory
        self.key = key
        self.path = path
        self.stamp = stamp
        self.inode, self.size, self.modified = stamp  # in bytes; in milliseconds since the epoch

    def open(self) -> int:
        """A descriptor for reading it. Raises OSError, OutsideGroupError."""
        confined_to = self.directory.confined_to
        return open_inside(confined_to, self.path) if confined_to else open_regular(self.path)
