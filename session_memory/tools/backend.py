"""What the tools work over: the sessions that an agent may see, and what it may do with them. Values and a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transcripts.entries import Entry

    Search = Callable[[str, int], list["SearchResult"]]


class RefusedError(SessionMemoryError):
    """What was asked for cannot be done; the message and the hint are for the model that asked."""


class ListedSession(NamedTuple):
    """A session that the agent may see: `id` is what resume_session takes, `session_id` the runtime's own.

    `modified` is in seconds since the epoch, None if unknown. `is_active` marks the one that the agent is in; `group`
    is '' but for a session of another group.
    """

    id: str
    name: str
    session_id: str
    modified: float | None = None
    is_active: bool = False
    group: str = ""


class SearchResult(NamedTuple):
    """A message that a search found: whose session it is of, who said it, when (seconds since the epoch, or None), the
    part of it with the words in it, and the conversation that it is kept in (the name of an archive), '' if none."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class Backend(Protocol):
    """The sessions of one agent. Which they are is settled when it is made: no argument of a tool names a group or a
    path, and the sessions that methods are given come from its own list.

    Methods raise SessionMemoryError for what the model should know, OSError for what cannot be read. They are called
    from several threads.
    """

    def sessions(self) -> list[ListedSession]:
        """The sessions, the latest first."""

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """The last `count` entries of a session in file order, and how many records could not be read."""

    def search(self, query: str, limit: int) -> list[SearchResult]:
        """At most `limit` messages of earlier conversations that fit the query, best first."""

    def clear(self, name: str) -> str:
        """Keeps the session under a name, so that the next message begins a new one. Returns what the model is told."""

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """Has the next message go on with an earlier session. Returns what the model is told."""
