"""Titles of conversations in lists, with the last request of their session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..common.text.format import one_line, shorten_both
from ..common.text.sanitize import for_people

if TYPE_CHECKING:
    from .store.sqlite.engine import SqliteStore
    from .store.values import Conversation

TITLE_CHARACTERS = 80


class Titles:
    """The titles of `conversations` of a store, or of one that tells no later requests (None)."""

    def __init__(self, store: SqliteStore | None, conversations: Iterable[Conversation]) -> None:
        self._later = store.later_requests(conversations) if store else {}

    def of(self, conversation: Conversation, limit: int = TITLE_CHARACTERS) -> str:
        """Return a title for people, in at most `limit` characters; '' if there is none.

        If it is the session's first request, the last one until the conversation's end follows."""
        return shorten_both(
            one_line(for_people(conversation.title)), self.later(conversation), limit
        )

    def later(self, conversation: Conversation) -> str:
        """Return the last request for people; '' if there is none, or the title says more."""
        return for_people(self._later.get(conversation.id, ""))
