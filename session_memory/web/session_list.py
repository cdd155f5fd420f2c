"""The store's sessions as lists show them: one line each, the latest first."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..runtimes import all_runtimes
from ..store.values import Filter
from ..system.git import find_worktree
from ..text.sanitize import all_for_people, for_people

if TYPE_CHECKING:
    from ..store.values import Conversation
    from .page_request import PageRequest


class ShownRuntime(NamedTuple):
    """A runtime's display name and colour."""

    title: str
    hue: int


class SessionLine(NamedTuple):
    """A session in a list. `last_at` is in seconds since the epoch, None if unknown; `group` is that of a host."""

    id: str
    title: str
    runtime: ShownRuntime
    project: str
    cwd: str
    group: str
    last_at: float | None
    messages: int


_OTHER_HUE = 6


def shown_runtime(name: str) -> ShownRuntime:
    """Return the display form of a runtime."""
    for hue, runtime in enumerate(all_runtimes()):
        if runtime.name == name:
            return ShownRuntime(runtime.install.TITLE, hue)
    return ShownRuntime(name, _OTHER_HUE)


@lru_cache(maxsize=2000)
def project_of(cwd: str) -> str:
    """Return a directory's project name: the name of the repository's directory, else its own."""
    found = find_worktree(cwd, os.path.expanduser("~")) if cwd.startswith("/") else None
    if found is not None:
        top = os.path.dirname(found.common_dir) if found.common_dir.endswith("/.git") else found.root
        return for_people(os.path.basename(top) or top)
    return for_people(os.path.basename(cwd.rstrip("/")) or cwd)


def session_lines(request: PageRequest, wanted: Filter) -> list[SessionLine]:
    """Return the sessions of the matching conversations, each once; `wanted.limit` counts conversations."""
    found: dict[tuple[str, str], list[Conversation]] = {}
    for one in request.store.conversations(wanted):
        found.setdefault((one.home, one.session_id), []).append(one)
    texts = iter(all_for_people([text for some in found.values() for text in (some[-1].title, some[0].cwd)]))
    return [_line(some, title, cwd) for some, title, cwd in zip(found.values(), texts, texts)]


def _line(conversations: list[Conversation], title: str, cwd: str) -> SessionLine:
    latest = conversations[0]
    return SessionLine(
        latest.session_id,
        title or "Untitled",
        shown_runtime(latest.runtime),
        project_of(cwd),
        cwd,
        latest.home,
        latest.last_message_at / 1000 if latest.last_message_at else None,
        sum(one.entry_count for one in conversations),
    )
