"""Now: the active sessions, each one's current work, its last update, and the waiting one. The list of sessions: at the
left of every view, and in the palette."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any, NamedTuple

from ...store.values import Conversation, Filter
from ...text.sanitize import all_for_people
from ..active_sessions import NIGHT_HOURS, active_since, midnight
from ..labels import ShownRuntime, project_of, shown_runtime
from ..page_request import PageRequest

CONVERSATIONS = 120  # at the left: the latest ones
PALETTE_LINES = 12


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
    lines = session_lines(request, Filter(request.location.homes, limit=CONVERSATIONS))
    days = groupby(lines, key=lambda line: day_name(line.last_at, request.now))
    working = {one.id for one in request.active if one.work}
    return {"days": [(day, list(some)) for day, some in days], "here": request.one("here"), "working": working}


def found(request: PageRequest) -> dict[str, Any]:
    """Return `lines` of the sessions whose title, project or id contains every word of the query `q`."""
    words = request.one("q").casefold().split()
    lines = session_lines(request, Filter(request.location.homes, limit=4 * CONVERSATIONS))
    fitting = [line for line in lines if all(word in _text_of(line) for word in words)]
    return {"lines": fitting[:PALETTE_LINES], "q": request.one("q").strip()}


def day_name(at: float | None, now: float) -> str:
    """Return Today, Yesterday, the day of the week, or the month."""
    if at is None:
        return "Without a time"
    noon = time.mktime((*time.localtime(now)[:3], 12, 0, 0, 0, 0, -1))
    days = round((noon - time.mktime((*time.localtime(at)[:3], 12, 0, 0, 0, 0, -1))) / 86400)
    if days < 2:
        return ("Today", "Yesterday")[max(days, 0)]
    return time.strftime("%A" if days < 7 else "%B %Y", time.localtime(at))


def _text_of(line: SessionLine) -> str:
    return f"{line.title} {line.project} {line.runtime.title} {line.id}".casefold()


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
