"""The former names of sessions: those of saved sessions, and those with which sessions were archived."""

from __future__ import annotations

import os
from contextlib import suppress

from ..settings.homes import Home, host_of
from ..settings.host_layout import Layout
from ..text.timestamps import epoch_seconds
from ..transcripts.pointers import earlier_names
from .list import list_archives
from .privacy import private_path

Names = dict[str, list[str]]  # by the id of a session


def former_names(home: Home) -> Names:
    """Return the names that the sessions of a home had, by their ids, the latest last."""
    named = archived_names(home.conversations_dir)
    host = host_of(home.root)
    if host not in ("", home.root):
        with suppress(ImportError):  # without apsw there is no host either
            for session, names in earlier_names(Layout(host).database, os.path.basename(home.root)).items():
                named.setdefault(session, []).extend(names)
    return named


def archived_names(directory: str) -> Names:
    """Return the names with which sessions were archived in a directory, and in the private folder beside it."""
    found: list[tuple[float, str, str]] = []
    for folder in (directory, os.path.dirname(private_path(directory, ""))):
        for _, facts in list_archives(folder):
            last = epoch_seconds(facts.get("last")) or 0.0
            names = [facts.get("title") if facts.get("is_named") else "", facts.get("name")]
            found += [(last, facts["session"], name) for name in names if isinstance(name, str) and name]
    named: Names = {}
    for _, session, name in sorted(found, key=lambda one: one[0]):
        named.setdefault(session, []).append(name)
    return named
