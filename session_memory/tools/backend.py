"""What the tools work over: the sessions that an agent may see, and what it may do with them. Values and a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..memories.strategies.graphiti.strategy import GraphFact
    from ..patterns.habits import ErrorMatch
    from ..store.sqlite.memory_index import IndexedMemory
    from ..transcripts.entries import Entry

    Search = Callable[[str, int, "SearchLimits"], list["SearchResult"]]


_TEAM = "team-"  # before the number of a conversation, in an id that search_team gives


class RefusedError(SessionMemoryError):
    """What was asked for cannot be done; the message and the hint are for the model that asked."""


class ListedSession(NamedTuple):
    """A session that the agent may see: `id` is what resume_session takes, `session_id` the runtime's own.

    `modified` is in seconds since the epoch, None if unknown. `is_active` marks the one that the agent is in; `group`
    is '' but for a session of another group, `runtime` but for one in another runtime.
    """

    id: str
    name: str
    session_id: str
    modified: float | None = None
    is_active: bool = False
    group: str = ""
    runtime: str = ""


class SearchLimits(NamedTuple):
    """What a search is limited to: from `since` on and before `until`, in milliseconds since the epoch, None for no
    limit; in directories that `project` is part of, whatever its case."""

    since: int | None = None
    until: int | None = None
    project: str = ""

    def fits(self, milliseconds: float | None, *directories: str) -> bool:
        """Whether what was said then, in sessions that were started there, is within the limits."""
        if self.since is not None and (milliseconds is None or milliseconds < self.since):
            return False
        if self.until is not None and (milliseconds is None or milliseconds >= self.until):
            return False
        project = self.project.casefold()
        return not project or any(project in directory.casefold() for directory in directories)


EVERYWHERE = SearchLimits()


def team_id(conversation: object) -> str:
    """The id by which an agent reads a conversation of its team, '' where there is none that could be read."""
    return f"{_TEAM}{conversation}" if conversation else ""


def team_conversation(id: str) -> int | None:
    """The number of the conversation that `team_id` made an id of; None for the id or the name of anything else."""
    number = id.strip().removeprefix(_TEAM)
    return int(number) if id.strip().startswith(_TEAM) and number.isascii() and number.isdigit() else None


class SearchResult(NamedTuple):
    """A message that a search found: whose session it is of, who said it, when (seconds since the epoch, or None), the
    part of it with the words in it, and the conversation that it is kept in (the name of an archive), '' if none."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class SearchResults(list[SearchResult]):
    """What a search found, the best first. `notice` tells the agent how far the search reached, '' where there is
    nothing to tell."""

    def __init__(self, found: Iterable[SearchResult] = (), notice: str = "") -> None:
        super().__init__(found)
        self.notice = notice


class ListedTask(NamedTuple):
    """A scheduled task as the agent may see it; times are ISO 8601 in UTC, or None."""

    id: str
    group: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    status: str
    next_run: str | None
    last_run: str | None
    last_result: str | None


class ListedChat(NamedTuple):
    """A chat that the host has heard of, and the group that answers in it, '' for none. `trigger` is what its agent has
    to be called by, '' where it answers everything; `last_activity` is ISO 8601 in UTC, '' for never."""

    chat: str
    name: str
    group: str
    trigger: str
    last_activity: str


class Administration(Protocol):
    """What a host does for the agent of one of its groups, beyond its sessions. Its group is settled when it is
    made; `is_main` says that it is the one that looks after the others.

    A `group` that a method is given is '' for the agent's own. Methods raise as those of Backend do.
    """

    @property
    def group(self) -> str:
        """The agent's own group."""

    @property
    def is_main(self) -> bool:
        """Whether the agent may name other groups."""

    def tasks(self) -> list[ListedTask]:
        """The tasks that the agent may change, the next one first."""

    def schedule(
        self, group: str, prompt: str, schedule_type: str, schedule_value: str, context_mode: str
    ) -> ListedTask:
        """Adds a task; one that is there already is not added again."""

    def update_task(self, task_id: str, changes: dict[str, str]) -> ListedTask:
        """Changes what is named of a task."""

    def cancel_task(self, task_id: str) -> None:
        """Takes a task away."""

    def chats(self) -> list[ListedChat]:
        """The chats of the host, those of groups first. For main."""

    def register_group(self, group: str, chat: str, name: str, trigger: str) -> ListedChat:
        """Makes a group that answers in a chat, '' for one that is spoken to at the terminal. For main."""

    def update_group(self, group: str, changes: dict[str, str]) -> ListedChat:
        """Changes the name, trigger or chat of a group. For main."""


class Backend(Protocol):
    """The sessions of one agent. Which they are is settled when it is made: no argument of a tool names a group or a
    path, and the sessions that methods are given come from its own list.

    Methods raise SessionMemoryError for what the model should know, OSError for what cannot be read. They are called
    from several threads.
    """

    @property
    def administration(self) -> Administration | None:
        """What the host of the agent's group does for it; None where there is no host."""

    @property
    def has_graph(self) -> bool:
        """Whether there is a knowledge graph that `search_graph` can ask."""

    @property
    def has_team(self) -> bool:
        """Whether there is a team that `search_team` can ask."""

    def sessions(self) -> list[ListedSession]:
        """The sessions, the latest first."""

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """The last `count` entries of a session in file order, and how many records could not be read."""

    def search(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """At most `limit` memories and messages of earlier conversations that fit the query and are within `limits`:
        memories first, each the best first."""

    def errors(self, text: str) -> list[ErrorMatch]:
        """Where a tool failed with the same error as a line of `text`, the best match first."""

    def search_graph(self, query: str, limit: int) -> list[GraphFact]:
        """At most `limit` facts of the knowledge graph that fit the query, the best first; of several groups so many of
        each."""

    def search_team(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """What `search` is for the home, for what its team has: who said it and where stands in `role`. The
        `session_id` is a `team_id`."""

    def team_entries(self, conversation: int, count: int) -> tuple[ListedSession, list[Entry]]:
        """A conversation of the team, named after whose it is, and its last `count` entries in order."""

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """Keeps a memory that a quotation from the agent's session bears out; returns it as it is kept."""

    def forget(self, id: str) -> tuple[IndexedMemory, str]:
        """Forgets a memory of the agent's own; returns it, and the command by which a person takes it back."""

    def clear(self, name: str) -> str:
        """Keeps the session under a name, so that the next message begins a new one. Returns what the model is told."""

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """Has the next message go on with an earlier session. Returns what the model is told."""
