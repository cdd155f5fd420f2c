"""Move the archives and memories of a store where the rules require, before anyone reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..archives.privacy import settle
from ..errors import SessionMemoryError, described
from ..memories.folders import groups_of, home_of
from ..memories.library import open_index
from ..settings.privacy import Privacy
from ..store.location import StoreLocation
from ..store.refresh import PATIENCE_SECONDS, Note
from ..system.sqlite import CorruptDatabaseError, Patience


def follow_rules(location: StoreLocation, environ: Mapping[str, str], note: Note) -> None:
    """Move files that rules exclude to private folders, and others back. A host does this for its groups' archives.
    Calls `note` with any obstacle. Raises CorruptDatabaseError."""
    try:
        for archives in location.archives:
            if not archives.confined_to and os.path.isdir(archives.directory):
                settle(archives.directory, Privacy(environ, location.home))
        if any(os.path.isdir(home_of(location, group).memories_dir) for group in groups_of(location)):
            with open_index(location, note, Patience(PATIENCE_SECONDS)):
                pass  # which has moved them
    except CorruptDatabaseError:
        raise
    except (SessionMemoryError, OSError) as error:
        note(f"what rules exclude could not all be moved: {described(error)}")
