"""Now: the active sessions, each one's current work, its last update, and the waiting one. The list of sessions: at the
left of every view, and in the palette."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any

from ...store.values import Conversation, Filter
from ...text.sanitize import all_for_people
from ..active_sessions import NIGHT_HOURS, active_since, midnight
from ..labels import project_of, shown_runtime
from ..page_request import PageRequest

CONVERSATIONS = 120  # at the left: the latest ones
PALETTE_LINES = 12


def now(request: PageRequest) -> dict[str, Any]:
    """Return `projects` as pairs of a name and its sessions, the latest first; `alarms`, the problems to fix."""
    since = active_since(request.now)
    sessions = [one for one in request.active if one.last_at >= since]
    first_at: dict[str, int] = {}
    for position, one in enumerate(sessions):
        first_at.setdefault(one.project, position)
    ordered = sorted(sessions, key=lambda one: first_at[one.project])
    return {
        "projects": [(project, list(some)) for project, some in groupby(ordered, key=lambda one: one.project)],
        "colliding": sum(bool(one.collisions) for one in sessions),
        "count": len(sessions),
        "working": sum(bool(one.work) for one in sessions),
        "since": "today" if since == midnight(request.now) else f"in the last {NIGHT_HOURS} hours",
        "alarms": request.alarms,
    }


def listed(request: PageRequest) -> dict[str, Any]:
    """Return `days` as pairs of a day's name and its sessions; `here`, the id of the session shown; `working`, the ids
    of the sessions at work."""
    sessions = _sessions(request, CONVERSATIONS)
    days = groupby(sessions, key=lambda one: _day_name(one.last_message_at, request.now))
    working = {one.id for one in request.active if one.work}
    return {"days": [(day, list(some)) for day, some in days], "here": request.one("here"), "working": working}


def found(request: PageRequest) -> dict[str, Any]:
    """Return the `sessions` whose title, project or id contains every word of the query `q`."""
    words = request.one("q").casefold().split()
    fitting = [one for one in _sessions(request, 4 * CONVERSATIONS) if all(word in _text_of(one) for word in words)]
    return {"sessions": fitting[:PALETTE_LINES], "q": request.one("q").strip()}


def _day_name(milliseconds: int | None, now: float) -> str:
    """Return Today, Yesterday, the day of the week, or the month."""
    if milliseconds is None:
        return "Without a time"
    at = milliseconds / 1000
    days = round((midnight(now) - midnight(at)) / 86400)
    if days < 2:
        return ("Today", "Yesterday")[max(days, 0)]
    return time.strftime("%A" if days < 7 else "%B %Y", time.localtime(at))


def _text_of(one: Conversation) -> str:
    return f"{one.title} {project_of(one.cwd)} {shown_runtime(one.runtime).title} {one.session_id}".casefold()


def _sessions(request: PageRequest, most: int) -> list[Conversation]:
    """Return the latest conversation of each session of the `most` latest, with the title of the session, redacted."""
    found: dict[tuple[str, str], list[Conversation]] = {}
    for one in request.store.conversations(Filter(request.location.homes, limit=most)):
        found.setdefault((one.home, one.session_id), []).append(one)
    texts = iter(all_for_people([text for some in found.values() for text in (some[-1].title, some[0].cwd)]))
    return [
        some[0]._replace(title=title or "Untitled", cwd=cwd) for some, title, cwd in zip(found.values(), texts, texts)
    ]
