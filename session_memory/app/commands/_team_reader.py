"""Asks the team's store for the sessions of others, in the background, for `agents --team`.

The store has what each machine pushed, and nothing of its processes. A state that this does not
show is unknown, with the reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from ...common.errors import SessionMemoryError, described
from ...common.text.format import one_line
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age
from ...history.store.location import StoreLocation, find_location
from ...history.store.values import NUMBERS, TOOL_ROLE, Filter, StoredEntry
from ...memory.shared_store import RecentSession, of_shared_project, shared_engine
from ...sessions.states import UNKNOWN, WORKING, State
from ...sessions.transcripts.entries import Entry, ToolUse
from ...sessions.transcripts.turns import UNANSWERED_SECONDS
from ..active_sessions import ActiveSession, active_since
from ..projects import limited_to, read_project

ANSWER_SECONDS = 3.0  # that a command waits for the answer
QUESTION_SECONDS = 60.0  # between two questions, if they are repeated
MOST_SESSIONS = 50
_UNREAD = "the team's store cannot be read"


@dataclass(frozen=True)
class TeamAnswer:
    """The sessions of others that were active today, and why there may be others, '' if known.

    `is_known` is False before the first answer."""

    sessions: tuple[ActiveSession, ...] = ()
    problem: str = ""
    is_known: bool = True

    def without(self, ids: Collection[str]) -> TeamAnswer:
        """Return the answer without sessions that are on this machine too."""
        return replace(self, sessions=tuple(each for each in self.sessions if each.id not in ids))


class TeamReader:
    """The team's store as a thread asks it: once, or again and again if it `repeats`.

    `home` and `all_projects` are as for SessionReader. Raises NoTeamError, NoStoreError,
    ConfigError, OSError."""

    def __init__(
        self,
        home: str | None,
        environ: Mapping[str, str],
        *,
        all_projects: bool = True,
        repeats: bool = False,
    ) -> None:
        location = find_location(home, environ)
        url = shared_engine().joined_url(location.home)
        wanted = Filter(limit=MOST_SESSIONS)
        if not all_projects:
            here = limited_to(read_project(".", environ), wanted, location.home)
            wanted = of_shared_project(here, location.home)
        self._question = partial(_sessions_of_others, location, url, wanted)
        self._repeats = repeats
        self._answer = TeamAnswer(is_known=False)
        self._has_answered, self._is_closed = threading.Event(), threading.Event()
        self._until = time.monotonic() + ANSWER_SECONDS
        threading.Thread(target=self._ask, daemon=True).start()

    def latest(self) -> TeamAnswer:
        """Return the last answer. A question that is not repeated is waited for, but not long."""
        if not self._repeats and not self._has_answered.wait(self._until - time.monotonic()):
            return TeamAnswer(problem=f"{_UNREAD}: no answer within {ANSWER_SECONDS:g} s")
        return self._answer

    def close(self) -> None:
        """Ask no more questions."""
        self._is_closed.set()

    def _ask(self) -> None:
        while not self._is_closed.is_set():
            try:
                self._answer = TeamAnswer(self._question(time.time()))
            except Exception as error:  # the sessions of this machine are shown all the same
                self._answer = TeamAnswer(
                    tuple(map(_unanswered, self._answer.sessions)), _problem(error)
                )
            self._has_answered.set()
            if not self._repeats:
                return
            self._is_closed.wait(QUESTION_SECONDS)


def _sessions_of_others(
    location: StoreLocation, url: str, wanted: Filter, now: float
) -> tuple[ActiveSession, ...]:
    """Return the sessions of others. Raises SessionMemoryError."""
    since, machine = round(active_since(now) * 1000), location.home.settings().shared_machine
    with closing(shared_engine().open_store(url, location.visible)) as store:
        recent = store.recent(machine, wanted._replace(since=since))
    shown = [_active_session(session, now) for session in recent]
    return tuple(sorted(shown, key=lambda each: -each.last_at))


def _problem(error: Exception) -> str:
    hint = error.hint if isinstance(error, SessionMemoryError) else ""
    reason = "; ".join(filter(None, [described(error), hint]))
    return f"{_UNREAD}: {one_line(for_people(reason))}"


def _unanswered(session: ActiveSession) -> ActiveSession:
    return session._replace(state=State(UNKNOWN, session.last_at, reason=_UNREAD))


def _active_session(session: RecentSession, now: float) -> ActiveSession:
    entries = [_entry(item) for item in session.items]
    last_at = max((entry.timestamp or 0.0 for entry in entries), default=0.0)
    active = ActiveSession.of_entries(
        session.session_id, session.title, session.runtime, session.project, entries, last_at
    )
    return active._replace(
        cwd="",  # none of this machine
        branch=for_people(session.branch),
        state=_state(session, now),
        who=for_people(session.who),
        pushed_at=now - session.unseen_seconds,
    )


def _entry(item: StoredEntry) -> Entry:
    at = None if item.timestamp is None else item.timestamp / 1000
    if item.role == TOOL_ROLE:
        tools = (ToolUse(item.tool, item.text, item.kind),)
        return Entry("assistant", "", tools=tools, timestamp=at)
    return Entry(item.role, item.text, timestamp=at)


def _state(session: RecentSession, now: float) -> State:
    """Return the state of a session when its machine last pushed, if it did lately."""
    last = session.items[-1] if session.items else None
    at = (last.timestamp or 0) / 1000 if last else 0.0
    unseen = session.unseen_seconds
    if last is None:
        return State(UNKNOWN, at, reason="nothing of it is shared")
    if unseen > UNANSWERED_SECONDS:
        return State(UNKNOWN, at, reason=f"last push {age(unseen)}")
    calls = takewhile(lambda item: item.role == TOOL_ROLE, reversed(session.items))
    if call := next((item for item in calls if item.id & NUMBERS in session.open_calls), None):
        return State(UNKNOWN, at, call.tool, call.text, "may run, or ask for approval")
    if last.role == "assistant":
        return State(UNKNOWN, at, reason="answered: waits or closed")
    if now - unseen - at > UNANSWERED_SECONDS:
        return State(UNKNOWN, at, reason="no answer for long")
    return State(WORKING, at)
