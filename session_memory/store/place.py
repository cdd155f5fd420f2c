"""Where the store of whoever asks lies, and what goes into it. Values, and the transcripts that they stand for.

Plain classes, and nothing imported before it is needed: where nothing is new, a command has no more to load than this.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..settings.store_section import StoreSettings
    from .ingest.sources import Found, Source

SUFFIX = ".jsonl"
DEEPEST = 2  # <project>/<session>.jsonl; what lies deeper belongs to sub-agents


class Watched:
    """A directory whose transcripts belong in the store, as those of the group `home`: all of them, or those in
    `within`, names of folders and keys of single files. One that is named in the configuration or on a command line
    should be there; a runtime's own comes with its first session. `confined_to` is as in sources.Source."""

    def __init__(
        self, root: str, home: str = "", within: tuple[str, ...] | None = None, *, is_named: bool = False,
        confined_to: str = "",
    ) -> None:  # fmt: skip
        self.root = root
        self.home = home
        self.within = within
        self.is_named = is_named
        self.confined_to = confined_to

    @property
    def source(self) -> Source:
        """The directory as ingestion takes it."""
        from .ingest.sources import Source

        return Source(self.root, self.home, is_live=True, confined_to=self.confined_to)

    def holds(self, key: str) -> bool:
        """Whether a file of this key, there or not, belongs to it."""
        if not key.endswith(SUFFIX) or key.count("/") >= DEEPEST:
            return False
        return self.within is None or key in self.within or key.partition("/")[0] in self.within

    def find(self) -> list[Found]:
        """Its transcripts, the oldest first. Raises OSError where the directory cannot be read."""
        from .ingest.sources import find_files

        found = find_files(self.source)
        return found if self.within is None else [one for one in found if self.holds(one.key)]


class Archives:
    """A directory with archives, of the group `home` ('' without groups), confined as in sources.Source."""

    def __init__(self, directory: str, home: str = "", confined_to: str = "") -> None:
        self.directory = directory
        self.home = home
        self.confined_to = confined_to


class StorePlace:
    """The store's file; what is watched for it; the archives that stand in for transcripts which are gone; the groups
    whose entries may be seen (None: all that it holds)."""

    def __init__(
        self, database: str, watched: Iterable[Watched], archives: Iterable[Archives], homes: tuple[str, ...] | None,
        settings: StoreSettings,
    ) -> None:  # fmt: skip
        self.database = database
        self.watched = tuple(watched)
        self.archives = tuple(archives)
        self.homes = homes
        self.settings = settings

    def watching(self, watched: Iterable[Watched]) -> StorePlace:
        """The same store, with something else that is watched for it."""
        return StorePlace(self.database, watched, self.archives, self.homes, self.settings)
