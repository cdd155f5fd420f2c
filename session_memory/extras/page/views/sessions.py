"""Now: the next updates of the active sessions, the files that two of them work on, and their work.

The list of sessions is at the left of every view.
"""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any, NamedTuple

from ....app.active_sessions import NIGHT_HOURS, ActiveSession, active_since
from ....app.labels import project_of
from ....awareness.activity.collisions.facts import PATH_CHARACTERS
from ....common.text.format import shorten
from ....common.text.paths import relative
from ....common.text.sanitize import for_people
from ....common.text.timestamps import midnight
from ....history.store.values import Conversation, Filter
from .._labels import shown_runtime
from .._page_request import PageRequest
from .._view import View

CONVERSATIONS = 120  # at the left: the latest ones
ALL = Filter()


def _now(request: PageRequest) -> dict[str, Any]:
    """Return the values of the view.

    `projects` are pairs of a name and its sessions, the latest first, without the `idle` ones.
    `told` are the sessions whose next update is shown in full: the ones that are not idle, or else
    the latest. `colliding` is from `_collisions`; `alarms` are the problems to fix."""
    since = active_since(request.now)
    sessions = [session for session in request.active if session.last_at >= since]
    first_at: dict[str, int] = {}
    for position, session in enumerate(sessions):
        first_at.setdefault(session.project, position)
    idle = [session for session in sessions if session.is_idle(request.now)]
    ordered = sorted(
        [session for session in sessions if session not in idle],
        key=lambda session: first_at[session.project],
    )
    waiting = sorted(
        [session for session in sessions if session.waiting],
        key=lambda session: not session.collisions,
    )
    return {
        "projects": [
            (project, list(run))
            for project, run in groupby(ordered, key=lambda session: session.project)
        ],
        "idle": idle,
        "told": [session for session in waiting if session not in idle] or waiting[:1],
        "colliding": _collisions(sessions),
        "count": len(sessions),
        "working": sum(session.state.is_working for session in sessions),
        "since": "today" if since == midnight(request.now) else f"in the last {NIGHT_HOURS} hours",
        "alarms": request.alarms,
    }


class Holder(NamedTuple):
    """A session with a file in hand: its last action with the time.

    `is_unaware` means that it has not been told about the collision."""

    session: ActiveSession
    did: str
    at: float
    is_unaware: bool


class Collision(NamedTuple):
    """A file that several sessions work on, and these sessions, the latest first.

    For a collision without a file, such as a branch that was switched, `line` is the text and
    `holders` has the session that is not told yet."""

    path: str
    holders: list[Holder]
    line: str = ""


def _collisions(sessions: list[ActiveSession]) -> list[Collision]:
    """Return the collisions that are not yet reported to a session.

    A resolved collision is in no waiting update."""
    unaware: dict[str, set[str]] = {}
    others = []
    for session in sessions:
        for line in session.collisions:
            named = line.partition(": ")[0]
            paths = [path for path, _, _ in session.hands if _as_told(path, session.cwd) in named]
            for path in paths:
                unaware.setdefault(path, set()).add(session.id)
            if not paths:
                others.append(Collision("", [Holder(session, "", session.last_at, True)], line))
    collisions = []
    for path, ids in unaware.items():
        hands = [
            (session, hand) for session in sessions for hand in session.hands if hand[0] == path
        ]
        holders = [Holder(session, did, at, session.id in ids) for session, (_, did, at) in hands]
        shortest = min((relative(path, session.cwd) for session, _ in hands), key=len)
        collisions.append(
            Collision(for_people(shortest), sorted(holders, key=lambda holder: -holder.at))
        )
    return collisions + others


def _as_told(path: str, directory: str) -> str:
    """Return a path as a line about a collision names it."""
    return for_people(shorten(relative(path, directory), PATH_CHARACTERS))


def _listed(request: PageRequest) -> dict[str, Any]:
    """Return the list of sessions.

    `days` are pairs of a day's name and its sessions; `here` is the id of the session shown;
    `working` are the ids of the sessions at work."""
    sessions = sorted(
        latest_sessions(request, CONVERSATIONS),
        key=lambda conversation: -(conversation.last_message_at or 0),
    )
    days = groupby(
        sessions, key=lambda conversation: _day_name(conversation.last_message_at, request.now)
    )
    working = {session.id for session in request.active if session.state.is_working}
    return {
        "days": [(day, list(run)) for day, run in days],
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


def text_of(conversation: Conversation) -> str:
    """Return what a session is found by in the palette, in lower case."""
    project, runtime = project_of(conversation.cwd), shown_runtime(conversation.runtime).title
    return f"{conversation.title} {project} {runtime} {conversation.session_id}".casefold()


def latest_sessions(request: PageRequest, most: int, wanted: Filter = ALL) -> list[Conversation]:
    """Return the latest conversation of each of the `most` latest sessions.

    It has the session's title, redacted, and the time of its last entry, which the store may not
    have yet."""
    conversations_by_session: dict[tuple[str, str], list[Conversation]] = {}
    for conversation in request.store.conversations(wanted._replace(limit=most)):
        conversations_by_session.setdefault(
            (conversation.home, conversation.session_id), []
        ).append(conversation)
    return [
        latest._replace(
            title=for_people(first.title) or "Untitled",
            cwd=for_people(latest.cwd),
            last_message_at=round(request.last_at(latest) * 1000) or None,
        )
        for latest, *_, first in [
            (conversations[0], *conversations)
            for conversations in conversations_by_session.values()
        ]
    ]


VIEWS = (
    View("now", "/", _now, "Now", "n"),
    View("list", "/list", _listed),
)
