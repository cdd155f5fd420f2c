"""Titles of conversations in lists, with the last request of their session."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from ..common.text.format import one_line, shorten, shorten_both
from ..common.text.sanitize import for_people
from ..sessions.transcripts.reader import says_enough

if TYPE_CHECKING:
    from .store.sqlite.engine import SqliteStore
    from .store.values import Conversation

TITLE_CHARACTERS = 80


class Titles:
    """The titles of `conversations` of a store, or of one that tells no later requests (None)."""

    def __init__(self, store: SqliteStore | None, conversations: Iterable[Conversation]) -> None:
        self._later = store.later_requests(conversations) if store else {}

    @classmethod
    def of_sessions(
        cls,
        store: SqliteStore,
        conversations: Iterable[Conversation],
        ids: Container[str],
    ) -> dict[str, str]:
        """Return the titles of sessions by id, as `of_session` makes them.

        `conversations` begin with the latest; the first one has the session's name."""
        latest: dict[str, Conversation] = {}
        for conversation in conversations:
            if conversation.session_id in ids:
                last = latest.get(conversation.session_id, conversation)
                latest[conversation.session_id] = last._replace(title=conversation.title)
        titles = cls(store, latest.values())
        return {id: titles.of_session(each) for id, each in latest.items()}

    def of(self, conversation: Conversation, limit: int = TITLE_CHARACTERS) -> str:
        """Return a title for people, in at most `limit` characters; '' if there is none.

        If it is the session's first request, the last one until the conversation's end follows."""
        return shorten_both(
            one_line(for_people(conversation.title)), self.later(conversation), limit
        )

    def of_session(self, conversation: Conversation) -> str:
        """Return the title of the whole session of its last conversation, which has its title.

        Of a session that began with little, such as `/mode`, only the last request is shown."""
        later = self.later(conversation)
        is_first = not later or says_enough(conversation.title)
        return self.of(conversation) if is_first else shorten(later, TITLE_CHARACTERS)

    def later(self, conversation: Conversation) -> str:
        """Return the last request for people; '' if there is none, or the title says more."""
        return for_people(self._later.get(conversation.id, ""))
