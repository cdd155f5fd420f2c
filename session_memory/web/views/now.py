"""Now: the active sessions, each one's current work, its last update, and the waiting one."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..active_sessions import NIGHT_HOURS, active_since, midnight
from ..page_request import PageRequest


def values(request: PageRequest) -> dict[str, Any]:
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
