"""Filters that several views share: time, project, runtime, and this machine or the joined team.

The team is queried for each request and never for a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ...app.labels import project_of
from ...common.text.sanitize import for_people
from ...common.text.timestamps import milliseconds_at
from ...history.store.sqlite.tool_uses import work_places
from ...memory.shared_store import SharedStore, SharedStoreError, shared_engine, shared_url
from ._labels import shown_runtime
from ._page_request import PageRequest

SHARED = "team"  # as the value of `whose`
PERIODS = (
    ("today", "Today"),
    ("7d", "7 days"),
    ("30d", "30 days"),
    ("365d", "A year"),
    ("all", "Any time"),
)


class Choice(NamedTuple):
    value: str
    label: str
    is_chosen: bool


class Places(NamedTuple):
    """The projects and runtimes to choose from.

    `directories` are the chosen project's, empty if any project fits."""

    projects: list[Choice]
    runtimes: list[Choice]
    directories: tuple[str, ...]


def chosen_of(pairs: Iterable[tuple[str, str]], chosen: str) -> list[Choice]:
    return [Choice(value, label, value == chosen) for value, label in pairs]


def period(request: PageRequest, default: str) -> tuple[list[Choice], int | None]:
    """Return the periods, and the beginning of the one chosen by `since`, or None for any time.

    The beginning is in milliseconds since the epoch."""
    chosen = request.one("since", default)
    if chosen not in dict(PERIODS):
        chosen = default
    return chosen_of(PERIODS, chosen), None if chosen == "all" else milliseconds_at(
        chosen, request.now
    )


def places(request: PageRequest) -> Places:
    """Return the projects, the latest first, and the runtimes.

    `project` and `runtime` are the choices. An unknown project gets a directory without sessions.
    """
    work = [(project_of(place.directory), place) for place in work_places(request.store)]
    names = dict.fromkeys(name for name, place in work if place.directory)
    kinds = {place.runtime: shown_runtime(place.runtime).title for _, place in work}
    project = request.one("project")
    directories = {place.directory for name, place in work if name == project and place.directory}
    return Places(
        chosen_of([("", "All projects"), *((name, for_people(name)) for name in names)], project),
        chosen_of([("", "All runtimes"), *sorted(kinds.items())], request.one("runtime")),
        tuple(sorted(directories)) or ((project,) if project else ()),
    )


def filters(request: PageRequest, default: str) -> dict[str, Any]:
    """Return the filters of a view whose content is requested on its own."""
    requested = {name: request.one(name) for name in ("since", "project", "runtime")}
    chosen = places(request)
    return {
        "times": period(request, default)[0],
        "projects": chosen.projects,
        "runtimes": chosen.runtimes,
        "asked": requested,
    }


def whose(request: PageRequest) -> list[Choice]:
    """Return the choice between this machine and the team; without a team, no choices."""
    pairs = (("", "This machine"), (SHARED, "The team"))
    return chosen_of(pairs, request.one("whose")) if shared_url(request.location.home) else []


def is_for_shared(request: PageRequest) -> bool:
    return any(choice.is_chosen for choice in whose(request) if choice.value == SHARED)


def opened(request: PageRequest) -> AbstractContextManager[SharedStore]:
    """Return the team's store. Raises NoTeamError, SharedStoreError."""
    url = shared_engine().joined_url(request.location.home)
    return request.shared_stores.store(url, request.location.visible)


def problem_with(error: SharedStoreError) -> str:
    return for_people(f"The team's store cannot be reached now: {error}.")


def directories_of(request: PageRequest, directories: Iterable[str]) -> tuple[str, ...]:
    """Return the team's names for the projects of local directories."""
    home, engine = request.location.home, shared_engine()
    return tuple(sorted({engine.project(home, path) or path for path in directories}))
