"""Now: a table of the files that two active sessions work on, and one of these sessions.

The list of sessions is at the left of every view.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ....app.active_sessions import NIGHT_HOURS, ActiveSession, active_since
from ....app.labels import project_of
from ....common.text.sanitize import for_people
from ....common.text.timestamps import midnight
from ....history.marks import Marks, Seen
from ....history.store.values import Conversation, Filter
from ....history.titles import Titles
from .._labels import shown_runtime
from .._now_rows import ActiveRow, CollisionRow, Notice, collision_rows
from .._page_request import PageRequest
from .._view import Action, FormFields, View

Row = CollisionRow | ActiveRow | Notice

HOLDERS = 3  # named in the row of a collision
CONVERSATIONS = 120  # at the left: the latest ones


def _now(request: PageRequest) -> dict[str, Any]:
    """Return the values of the view.

    `collisions` and `rows` are the rows that were not seen yet; `quiet` are the sessions that have
    ended and will hardly get another prompt.
    `seen` counts the rows and notices that were seen and have no news."""
    sessions = _sessions_of_day(request)
    marks, marks_problem = Marks.readable(request.location.home)
    rows = _rows(request, sessions)
    unseen = [row for row in rows if not marks.is_seen(row.key, row.news)]
    active = [row for row in unseen if isinstance(row, ActiveRow)]
    quiet = [row for row in active if _is_quiet(row.session, request.now)]
    is_of_day = active_since(request.now) == midnight(request.now)
    return {
        "collisions": [row for row in unseen if isinstance(row, CollisionRow)],
        "rows": [row for row in active if row not in quiet],
        "quiet": quiet,
        "notices": [row for row in unseen if isinstance(row, Notice)],
        "seen": len(rows) - len(unseen),
        "marks_problem": marks_problem,
        "shown_holders": HOLDERS,
        "count": len(sessions),
        "working": sum(session.state.is_working for session in sessions),
        "asking": sum(session.state.needs_user for session in sessions),
        "since": "today" if is_of_day else f"in the last {NIGHT_HOURS} hours",
    }


def _sessions_of_day(request: PageRequest) -> list[ActiveSession]:
    since = active_since(request.now)
    return [session for session in request.active if session.last_at >= since]


def _rows(request: PageRequest, sessions: list[ActiveSession]) -> list[Row]:
    """Return all rows and notices; sessions that wait for their user come first."""
    rows = [ActiveRow.of(session) for session in sessions]
    rows.sort(key=lambda row: (not row.session.state.needs_user, -row.news))
    return [*map(Notice.of, request.alarms), *collision_rows(sessions), *rows]


def _is_quiet(session: ActiveSession, now: float) -> bool:
    """Check if a session has ended or does nothing, and its row can be folded."""
    return session.is_idle(now) and not session.state.needs_user


def _see(request: PageRequest, fields: FormFields) -> str:
    """Note that a row or notice was seen, unless it has news by now."""
    rows = {row.key: row for row in _rows(request, _sessions_of_day(request))}
    row = rows.get(fields.one("row"))
    if row is not None and str(row.news) == fields.one("news"):
        with Marks.changing(request.location.home) as marks:
            marks.see(row.key, Seen(round(request.now), row.news, row.sessions))
    return "/"


def _show_seen_again(request: PageRequest, _: FormFields) -> str:
    """Show all rows and notices that were seen."""
    with Marks.changing(request.location.home) as marks:
        marks.seen.clear()
    return "/"


def _listed(request: PageRequest) -> dict[str, Any]:
    """Return the list of sessions.

    `days` are pairs of a day's name and its sessions, which `titles` name; `here` is the id of the
    session shown; `working` are the ids of the sessions at work."""
    sessions = sorted(
        latest_sessions(request, request.store.conversations(Filter(limit=CONVERSATIONS))),
        key=lambda conversation: -(conversation.last_message_at or 0),
    )
    days = groupby(
        sessions, key=lambda conversation: _day_name(conversation.last_message_at, request.now)
    )
    working = {session.id for session in request.active if session.state.is_working}
    return {
        "days": [(day, list(run)) for day, run in days],
        "titles": Titles(request.store, sessions),
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


def text_of(conversation: Conversation, titles: Titles) -> str:
    """Return what a session is found by in the palette, in lower case."""
    project, runtime = project_of(conversation.cwd), shown_runtime(conversation.runtime).title
    words = conversation.title, titles.later(conversation), project, runtime
    return " ".join((*words, conversation.session_id)).casefold()


def latest_sessions(
    request: PageRequest, conversations: Iterable[Conversation]
) -> list[Conversation]:
    """Return the latest conversation of each session; `conversations` begin with the latest.

    It has the session's title, redacted, and the time of its last entry, which the store may not
    have yet."""
    conversations_by_session: dict[tuple[str, str], list[Conversation]] = {}
    for conversation in conversations:
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
ACTIONS = (Action("/now/seen", _see), Action("/now/unseen", _show_seen_again))
