"""The active sessions of the page, of transcripts and of the store, which alone knows the groups of
a host."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial

from ...app.active_sessions import (
    ActiveSession,
    active_since,
)
from ...app.notices import Notices
from ...app.session_reader import SessionReader
from ...awareness.events.delivery_state import state_in_group
from ...common.errors import SessionMemoryError
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import TOOL_ROLE, Conversation, Filter, StoredEntry
from ...history.titles import Titles
from ...sessions.settings.host_layout import Layout
from ...sessions.transcripts.entries import Entry, ToolUse
from ...sessions.transcripts.sessions import UnknownSessionError
from ._store_pool import StorePool

CONVERSATIONS = 200


class ActiveSessions:
    """The active sessions of one store at the last read: `sessions`, the latest first.

    Each read sends `notices` of those that began to wait since the last one."""

    def __init__(self, pool: StorePool, environ: Mapping[str, str], notices: Notices) -> None:
        self.sessions: list[ActiveSession] = []
        self._pool = pool
        self._notices = notices
        home = pool.location.home
        path = home.root if home.sessions_dir or not home.user_dir else None
        self._reader = SessionReader(path, environ, all_projects=path is None)
        self._lock = threading.Lock()

    def directories(self) -> list[str]:
        """Return the directories in or below which a file changes whenever a session does."""
        return self._reader.directories()

    def read(self) -> bool:
        """Read them again; return whether anything changed."""
        with self._lock:
            now = time.time()
            since = active_since(now)
            try:
                cards = self._reader.read(now)
            except (UnknownSessionError, OSError):
                cards = []
            else:
                self._notices.follow(cards)
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


def _from_store(
    store: SqliteStore, location: StoreLocation, now: float, since: float, known: set[str]
) -> list[ActiveSession]:
    """Return the sessions with a message since then, without the `known` ones."""
    cards_by_session = {}
    for conversation in store.conversations(Filter(since=round(since * 1000), limit=CONVERSATIONS)):
        if conversation.session_id not in known and conversation.session_id not in cards_by_session:
            cards_by_session[conversation.session_id] = _of_conversation(store, conversation)
    host = Layout(location.home.root)
    return [
        card.with_delivery(partial(state_in_group, host.group(card.origin), card.id))
        if card.origin
        else card
        for card in cards_by_session.values()
    ]


def _of_conversation(store: SqliteStore, conversation: Conversation) -> ActiveSession:
    last_at = (conversation.last_message_at or 0) / 1000
    entries = [_entry_of(item) for item in store.entries(conversation.id)]
    card = ActiveSession.of_entries(
        conversation.session_id,
        conversation.title,
        conversation.runtime,
        conversation.cwd,
        entries,
        last_at,
    )
    later = Titles(store, [conversation]).later(conversation)
    return card._replace(origin=conversation.home, later_request=later)


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
