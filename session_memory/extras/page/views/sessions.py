"""Now: what the active sessions will be told, the files that two of them work on, and what each
does. The list of sessions: at the left of every view."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any, NamedTuple

from ....awareness.activity.collisions.facts import PATH_CHARACTERS
from ....common.text.format import shorten
from ....common.text.paths import relative
from ....common.text.sanitize import for_people
from ....history.store.values import Conversation, Filter
from .._active_sessions import NIGHT_HOURS, ActiveSession, active_since, midnight
from .._labels import project_of, shown_runtime
from .._page_request import PageRequest
from .._view import View

CONVERSATIONS = 120  # at the left: the latest ones
ALL = Filter()


def _now(request: PageRequest) -> dict[str, Any]:
    """Return `projects` as pairs of a name and its sessions, the latest first, without the `idle`
    ones; `told`, those whose next update is shown in full: the ones that are not idle, or else the
    latest; `colliding`, see `_collisions`; `alarms`, the problems to fix."""
    since = active_since(request.now)
    sessions = [one for one in request.active if one.last_at >= since]
    first_at: dict[str, int] = {}
    for position, one in enumerate(sessions):
        first_at.setdefault(one.project, position)
    idle = [one for one in sessions if one.is_idle(request.now)]
    ordered = sorted(
        [one for one in sessions if one not in idle], key=lambda one: first_at[one.project]
    )
    told = sorted([one for one in sessions if one.waiting], key=lambda one: not one.collisions)
    return {
        "projects": [
            (project, list(some)) for project, some in groupby(ordered, key=lambda one: one.project)
        ],
        "idle": idle,
        "told": [one for one in told if one not in idle] or told[:1],
        "colliding": _collisions(sessions),
        "count": len(sessions),
        "working": sum(bool(one.work) for one in sessions),
        "since": "today" if since == midnight(request.now) else f"in the last {NIGHT_HOURS} hours",
        "alarms": request.alarms,
    }


class Holder(NamedTuple):
    """A session with a file in hand: its last action, when, if unaware of the collision."""

    session: ActiveSession
    did: str
    at: float
    is_unaware: bool


class Collision(NamedTuple):
    """A file that several sessions work on, and who they are, the latest first. Of a collision
    about no file, such as a branch that was switched, `line` is the text and `holders` has the
    session that is not told yet."""

    path: str
    holders: list[Holder]
    line: str = ""


def _collisions(sessions: list[ActiveSession]) -> list[Collision]:
    """Return the collisions that are not yet reported to a session.

    A resolved collision is in no waiting update."""
    unaware: dict[str, set[str]] = {}
    others = []
    for one in sessions:
        for line in one.collisions:
            named = line.partition(": ")[0]
            paths = [path for path, _, _ in one.hands if _as_told(path, one.cwd) in named]
            for path in paths:
                unaware.setdefault(path, set()).add(one.id)
            if not paths:
                others.append(Collision("", [Holder(one, "", one.last_at, True)], line))
    found = []
    for path, ids in unaware.items():
        hands = [(one, hand) for one in sessions for hand in one.hands if hand[0] == path]
        holders = [Holder(one, did, at, one.id in ids) for one, (_, did, at) in hands]
        shortest = min((relative(path, one.cwd) for one, _ in hands), key=len)
        found.append(
            Collision(for_people(shortest), sorted(holders, key=lambda holder: -holder.at))
        )
    return found + others


def _as_told(path: str, directory: str) -> str:
    """Return a path as a line about a collision names it."""
    return for_people(shorten(relative(path, directory), PATH_CHARACTERS))


def _listed(request: PageRequest) -> dict[str, Any]:
    """Return `days` as pairs of a day's name and its sessions; `here`, the id of the session shown;
    `working`, the ids of the sessions at work."""
    sessions = sorted(
        latest_sessions(request, CONVERSATIONS), key=lambda one: -(one.last_message_at or 0)
    )
    days = groupby(sessions, key=lambda one: _day_name(one.last_message_at, request.now))
    working = {one.id for one in request.active if one.work}
    return {
        "days": [(day, list(some)) for day, some in days],
        "here": request.one("here"),
        "working": working,
    }


def _day_name(milliseconds: int | None, now: float) -> str:
    """Return Today, Yesterday, the day of the week, or the month."""
    if milliseconds is None:
        return "Without a time"
    at = milliseconds / 1000
    days = round((midnight(now) - midnight(at)) / 86400)
    if days < 2:
        return ("Today", "Yesterday")[max(days, 0)]
    return time.strftime("%A" if days < 7 else "%B %Y", time.localtime(at))


def text_of(one: Conversation) -> str:
    """Return what a session is found by in the palette, in lower case."""
    return (
        f"{one.title} {project_of(one.cwd)} {shown_runtime(one.runtime).title} {one.session_id}"
    ).casefold()


def latest_sessions(request: PageRequest, most: int, wanted: Filter = ALL) -> list[Conversation]:
    """Return the latest conversation of each session of the `most` latest, with the title of the
    session, redacted, and the time of its last entry, which the store may not have yet."""
    found: dict[tuple[str, str], list[Conversation]] = {}
    for one in request.store.conversations(wanted._replace(limit=most)):
        found.setdefault((one.home, one.session_id), []).append(one)
    return [
        latest._replace(
            title=for_people(first.title) or "Untitled",
            cwd=for_people(latest.cwd),
            last_message_at=round(request.last_at(latest) * 1000) or None,
        )
        for latest, *_, first in [(some[0], *some) for some in found.values()]
    ]


VIEWS = (
    View("now", "/", _now, "Now", "n"),
    View("list", "/list", _listed),
)
