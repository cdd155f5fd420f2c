"""Suggests the closest existing session or project for an unknown name."""

from __future__ import annotations

import os

from ..errors import SessionMemoryError
from ..store.values import Filter
from ..text.format import one_line, shorten
from ..text.sanitize import for_people
from .arguments import NO_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .opened_store import OpenStore

NAMES = 5
TITLE_CHARACTERS = 40
_LIKENESS = 0.4


class UnknownNameError(SessionMemoryError):
    """The project or session does not exist."""


def check_names(opened: OpenStore, wanted: Filter) -> None:
    """Raise UnknownNameError if the project or session of a filter does not exist, and suggest similar ones. Call it
    when nothing fits."""
    store = opened.store
    if wanted.session and not store.conversations(Filter(wanted.homes, session=wanted.session, limit=1)):
        talks = store.conversations(Filter(wanted.homes, limit=NO_LIMIT))
        by_name = {
            name: f"{one.session_id} {shorten(one_line(one.title), TITLE_CHARACTERS)}"
            for one in talks[::-1]
            for name in (one.title, one.session_id)
        }
        hint = _hint(wanted.session, by_name, "session-memory conversations lists them")
        raise UnknownNameError(f"no session goes by {wanted.session!r}", hint)
    if wanted.project and not store.conversations(Filter(wanted.homes, project=wanted.project, limit=1)):
        talks = store.conversations(Filter(wanted.homes, limit=NO_LIMIT))
        directories = [opened.terminal.short(one.cwd) for one in talks[::-1] if one.cwd]
        by_name = {os.path.basename(path): path for path in directories}
        hint = _hint(os.path.basename(wanted.project.rstrip("/")), by_name, "nothing was said in any project yet")
        raise UnknownNameError(f"no project has {wanted.project!r} in its directory", hint)


def _hint(name: str, by_name: dict[str, str], otherwise: str) -> str:
    """Return the names most like `name`, else the latest; `by_name` says how each is shown, the latest last."""
    from difflib import get_close_matches

    by_lower = {known.lower(): shown for known, shown in by_name.items()}
    near = _different(by_lower[one] for one in get_close_matches(name.lower(), list(by_lower), 2 * NAMES, _LIKENESS))
    found = near or _different(list(by_name.values())[::-1])
    if not found:
        return otherwise
    return "\n  ".join(["the nearest:" if near else "the latest:", *found])


def _different(names: Iterable[str]) -> list[str]:
    return [for_people(name) for name in dict.fromkeys(names)][:NAMES]
