"""The active sessions, read from their transcripts.

These are more detailed and more current than the store. Sessions that only the store has, as in the
groups of a host, come from the store.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ...awareness.activity.actions import EDIT, READ
from ...awareness.activity.collisions.facts import IDLE_SECONDS
from ...awareness.activity.report import SessionSummary, summarize
from ...awareness.events.delivery_state import DeliveryState, delivery_state, state_in_group
from ...common.errors import SessionMemoryError, described
from ...common.system.files import user_dir
from ...common.system.git import find_worktree, head_of
from ...common.text.sanitize import for_people
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import TOOL_ROLE, Conversation, Filter, StoredEntry
from ...sessions.settings.host_layout import Layout
from ...sessions.transcripts.entries import Entry, ToolUse
from ...sessions.transcripts.reader import is_request
from ...sessions.transcripts.sessions import FoundSession, UnknownSessionError, find_sessions
from ...sessions.transcripts.turns import is_at_work, is_running
from ._labels import ShownRuntime, project_of, quoted, shown_runtime
from ._store_pool import StorePool

ENTRIES = 60  # of each transcript, from its end
CONVERSATIONS = 200
REQUEST_CHARACTERS = 300
WORDS_CHARACTERS = 500
FILES = 8
NIGHT_HOURS = 12
_COLLISION = "! "  # begins the lines about a collision: see awareness/activity/collisions/_lines.py
# the page rewrites it for a person
_TO_THE_SESSION = re.compile(r"(, (?:before|after|which)) you ")


class LastUpdate(NamedTuple):
    """The update at a session's last prompt.

    It has its time, its exact text, and whether it arrived (None: unknown). If it `is_withheld`,
    there is no text, because that may contain something hidden by now."""

    at: float
    text: str
    has_arrived: bool | None
    is_withheld: bool = False

    @property
    def gist(self) -> str:
        """The first line about somebody's action."""
        return next(
            (line[2:] for line in self.text.splitlines() if line.startswith((_COLLISION, "- "))), ""
        )


class ActiveSession(NamedTuple):
    """A session of today.

    `files` are its last edits, `collisions` the lines about collisions that it has not been told.
    `hands` has the files that it read or edited lately: the path, `edited` or `read`, and the time.
    `waiting` is the exact text that its next prompt gets, `problem` the reason if that is unknown.
    `work` is its current state: '' if it waits for its user, `at work`, or `at work: Bash` if it
    called a tool last."""

    id: str
    name: str
    runtime: ShownRuntime
    project: str
    cwd: str
    last_at: float
    branch: str = ""
    request: str = ""
    words: str = ""
    files: tuple[str, ...] = ()
    hands: tuple[tuple[str, str, float], ...] = ()
    update: LastUpdate | None = None
    waiting: str = ""
    collisions: tuple[str, ...] = ()
    problem: str = ""
    group: str = ""
    work: str = ""

    def is_idle(self, now: float) -> bool:
        return not self.work and self.last_at < now - IDLE_SECONDS


class ActiveSessions:
    """The active sessions of one store at the last read; `sessions` has the latest first."""

    def __init__(self, pool: StorePool, environ: Mapping[str, str]) -> None:
        self.sessions: list[ActiveSession] = []
        self._pool = pool
        self._environ = environ
        self._lock = threading.Lock()

    def read(self) -> bool:
        """Read them again; return whether anything changed."""
        with self._lock:
            now = time.time()
            since = active_since(now)
            home = self._pool.location.home
            path = home.root if home.sessions_dir or not home.user_dir else None
            try:
                listed = find_sessions(path, path is None, self._environ, since=since)
            except (UnknownSessionError, OSError):
                listed = []
            cards = [_from_transcript(session, self._environ, now) for session in listed]
            try:
                with self._pool.store() as store:
                    known = {card.id for card in cards}
                    cards += _from_store(store, self._pool.location, now, since, known)
            # the page then reports the problem with the store
            except (SessionMemoryError, OSError):
                pass
            cards.sort(key=lambda card: -card.last_at)
            is_new = cards != self.sessions
            self.sessions = cards
            return is_new


def active_since(now: float) -> float:
    """Return the time since which a session counts as active, in seconds since the epoch.

    It is the start of today, or at night of yesterday."""
    return min(midnight(now), now - NIGHT_HOURS * 3600)


def midnight(at: float, days: int = 0) -> float:
    """Return the local start of a day `days` after the day of `at`, in seconds since 1970.

    Days of 23 hours count as others."""
    year, month, day, *_ = time.localtime(at)
    return time.mktime((year, month, day + days, 0, 0, 0, 0, 0, -1))


def _from_transcript(
    session: FoundSession, environ: Mapping[str, str], now: float
) -> ActiveSession:
    runtime = shown_runtime(session.runtime.name)
    try:
        entries = session.last_entries(ENTRIES)[0]
    except Exception as error:  # any error affects only this session's card
        problem = for_people(described(error))
        return ActiveSession(
            session.id, for_people(session.name), runtime, "", "", session.modified, problem=problem
        )
    last_at = max(
        (entry.timestamp for entry in entries if entry.timestamp is not None),
        default=session.modified,
    )
    cwd = next((entry.cwd for entry in reversed(entries) if entry.cwd), "")
    card = _card(session.id, session.name, runtime, cwd, entries, last_at, now - session.modified)
    is_over = not is_at_work(session.runtime, session.session.path, entries, now - session.modified)
    return _with_delivery(
        card._replace(work="") if is_over else card, lambda: delivery_state(session, environ), now
    )


def _card(
    id: str,
    name: str,
    runtime: ShownRuntime,
    cwd: str,
    entries: list[Entry],
    last_at: float,
    silent_seconds: float,
) -> ActiveSession:
    """Return what a session's entries say of it."""
    summary = summarize(entries) or SessionSummary()
    request, words = _last_request(entries)
    called = [tool.name for tool in entries[-1].tools] if entries else []
    return ActiveSession(
        id,
        for_people(name),
        runtime,
        project_of(cwd),
        for_people(cwd),
        last_at,
        _branch(cwd),
        quoted(request, REQUEST_CHARACTERS),
        quoted(words, WORDS_CHARACTERS),
        tuple(for_people(path) for path in summary.edited_files[: -FILES - 1 : -1]),
        _in_hand(summary.touched),
        work=work_of(entries[-1].role, "".join(called[-1:]), silent_seconds) if entries else "",
    )


def _with_delivery(
    card: ActiveSession, state: Callable[[], DeliveryState | None], now: float
) -> ActiveSession:
    """Return the session with its last update, its next one, and the collisions in that."""
    try:
        delivered, waiting, is_withheld, _ = state() or (None, "", False, ())
    except Exception as error:  # see above
        return card._replace(problem=for_people(described(error)))
    update = None
    if delivered:
        update = LastUpdate(
            delivered.at, for_people(delivered.text or ""), delivered.acknowledged, is_withheld
        )
    waiting = for_people(waiting)
    collisions = [
        line.removeprefix(_COLLISION)
        for line in waiting.splitlines()
        if line.startswith(_COLLISION)
    ]
    shown = tuple(_TO_THE_SESSION.sub(r"\1 this session ", line) for line in collisions)
    return card._replace(update=update, waiting=waiting, collisions=shown)


def _in_hand(calls: Iterable[tuple[str, str, float | None]]) -> tuple[tuple[str, str, float], ...]:
    """Return each file with the last action on it; an edit outranks later reading."""
    hands_by_path: dict[str, tuple[str, str, float]] = {}
    for path, kind, at in calls:
        if kind == EDIT or (kind == READ and hands_by_path.get(path, ("", ""))[1] != "edited"):
            hands_by_path[path] = path, "edited" if kind == EDIT else "read", at or 0.0
    return tuple(hands_by_path.values())


def _from_store(
    store: SqliteStore, location: StoreLocation, now: float, since: float, known: set[str]
) -> list[ActiveSession]:
    """Return the sessions with a message since a time, except the `known` ones."""
    cards_by_session = {}
    for conversation in store.conversations(Filter(since=round(since * 1000), limit=CONVERSATIONS)):
        if conversation.session_id not in known and conversation.session_id not in cards_by_session:
            cards_by_session[conversation.session_id] = _of_conversation(store, conversation, now)
    host = Layout(location.home.root)
    return [
        _with_delivery(card, partial(state_in_group, host.group(card.group), card.id), now)
        if card.group
        else card
        for card in cards_by_session.values()
    ]


def _of_conversation(store: SqliteStore, conversation: Conversation, now: float) -> ActiveSession:
    runtime, last_at = (
        shown_runtime(conversation.runtime),
        (conversation.last_message_at or 0) / 1000,
    )
    entries = [_entry_of(item) for item in store.entries(conversation.id)]
    card = _card(
        conversation.session_id,
        conversation.title,
        runtime,
        conversation.cwd,
        entries,
        last_at,
        now - last_at,
    )
    return card._replace(group=conversation.home)


def _entry_of(item: StoredEntry) -> Entry:
    at = None if item.timestamp is None else item.timestamp / 1000
    if item.role != TOOL_ROLE:
        return Entry(item.role, item.text, timestamp=at, cwd=item.cwd)
    return Entry(
        "assistant",
        "",
        tools=(ToolUse(item.tool, item.text, item.kind),),
        timestamp=at,
        cwd=item.cwd,
    )


def work_of(role: str, tool: str, silent_seconds: float) -> str:
    """Return a session's state, from the role of its last entry and the tool it called.

    An agent that answered waits; one that was asked or called a tool is at work."""
    if not is_running(role, bool(tool), silent_seconds):
        return ""
    return f"at work: {for_people(tool)}" if tool else "at work"


def _last_request(entries: list[Entry]) -> tuple[str, str]:
    """Return the last request, and the agent's last message since then; each may be ''."""
    request = words = ""
    for entry in entries:
        if entry.role == "user" and is_request(entry.text):
            request, words = entry.text, ""
        elif entry.role == "assistant" and entry.text:
            words = entry.text
    return request, words


def _branch(cwd: str) -> str:
    worktree = find_worktree(cwd, user_dir(os.environ)) if cwd.startswith("/") else None
    head = head_of(worktree.git_dir) if worktree else ""
    return head[:12] if len(head) == 40 else for_people(head)
