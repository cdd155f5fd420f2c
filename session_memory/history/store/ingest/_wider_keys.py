"""Gives files one key, whether a runtime's whole directory is watched or a part of it.

Earlier versions named a file relative to the watched part, so a store may have it twice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..location import StoreLocation
    from ..sqlite.engine import SqliteStore


def widen_keys(store: SqliteStore, location: StoreLocation) -> None:
    """Rename files that an earlier version named relative to a part of a watched directory.

    If the store has a file under both keys, it keeps the one under the wider key, unless the other
    has more of a transcript that is gone. Raises DatabaseError."""
    roots = {directory.root for directory in location.watched}
    for directory in location.watched:
        states = store.file_states(directory.home)
        narrow = {state.root for state in states.values()} - roots
        keys = {
            key: new
            for key, state in states.items()
            if state.root in narrow and (new := directory.wider_key(state.root, key))
        }
        if not keys:
            continue
        whole = {
            key
            for key, new in keys.items()
            if new in states
            and states[key].offset > states[new].offset
            and not os.path.exists(f"{directory.path}/{new}")
        }
        store.rename_files(directory.home, directory.root, keys, whole)
