"""What the tools work over: the sessions that an agent may see, and what it may do with them. Values and a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..transcripts.entries import Entry

    Search = Callable[[str, int], list["Hit"]]


class RefusedError(SessionMemoryError):
    """What was asked for cannot be done; the message and the hint are for the model that asked."""


class Listed(NamedTuple):
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


class Hit(NamedTuple):
    """A message that a search found: whose session it is of, who said it, when (seconds since the epoch, or None), the
    part of it with the words in it, and the conversation that it is kept in (the name of an archive), '' if none."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class Desk(Protocol):
    """The sessions of one agent. The group is the desk's own: nothing that a tool is given can name another one.
    Sessions that it is given are from its own list.

    Methods raise SessionMemoryError for what the model should know, OSError for what cannot be read.
    """

    def sessions(self) -> list[Listed]:
        """The sessions, the latest first."""

    def entries(self, session: Listed, count: int) -> tuple[list[Entry], int]:
        """The last `count` entries of a session in file order, and how many records could not be read."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """At most `limit` messages of earlier conversations that fit the query, best first."""

    def clear(self, name: str) -> str:
        """Puts the session by under a name, so that the next message begins a new one; what to tell the model."""

    def resume(self, session: Listed, save_as: str | None) -> str:
        """Goes on with an earlier session at the next message; what to tell the model."""
