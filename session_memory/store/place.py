"""Where the store of whoever asks lies, and what goes into it. Plain classes: loaded where nothing is new, too."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..settings.homes import Home
    from ..settings.sections import StoreSettings
    from .ingest.sources import SourceDirectory


class Archives:
    """A directory with archives, of the group `home` ('' without groups), confined as in sources.SourceDirectory."""

    def __init__(self, directory: str, home: str = "", confined_to: str = "") -> None:
        self.directory = directory
        self.home = home
        self.confined_to = confined_to


class StorePlace:
    """The store's file; what is watched for it; the archives that stand in for transcripts which are gone; the groups
    whose entries may be seen (None: all that it holds); the home that it belongs to."""

    def __init__(
        self, database: str, watched: Iterable[SourceDirectory], archives: Iterable[Archives],
        homes: tuple[str, ...] | None, settings: StoreSettings, home: Home,
    ) -> None:  # fmt: skip
        self.database = database
        self.watched = tuple(watched)
        self.archives = tuple(archives)
        self.homes = homes
        self.settings = settings
        self.home = home

    def watching(self, watched: Iterable[SourceDirectory]) -> StorePlace:
        """The same store, with something else that is watched for it."""
        return StorePlace(self.database, watched, self.archives, self.homes, self.settings, self.home)
