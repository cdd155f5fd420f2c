"""The values that the tools exchange with a backend, and the services of a host. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...common.errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...history.store.values import Filter
    from ...sessions.settings.homes import Home
    from ..projects import Project

_TEAM = "team-"  # before the number of a conversation, in an id from search_team


class RefusedError(SessionMemoryError):
    """A request that cannot be fulfilled; message and hint are for the model."""


class ListedSession(NamedTuple):
    """A session that the agent may see: `id` is the argument of resume_session, `session_id` the
    runtime's own id.

    `modified` is in seconds since the epoch, None if unknown. `is_active` marks the agent's current
    session. `group` is set only for a session of another group, `runtime` only for one of another
    runtime.
    """

    id: str
    name: str
    session_id: str
    modified: float | None = None
    is_active: bool = False
    group: str = ""
    runtime: str = ""


class SearchLimits(NamedTuple):
    """Limits of a search: from `since` to `until`, in milliseconds since the epoch, None for no
    limit; in a `project`, None for all."""

    since: int | None = None
    until: int | None = None
    project: Project | None = None

    def filter(self, limit: int, home: Home) -> Filter:
        """Return the limits as a filter of at most `limit` results."""
        from ...history.store.values import Filter
        from ..projects import limited_to

        wanted = Filter(since=self.since, until=self.until, limit=limit)
        return limited_to(self.project, wanted, home) if self.project else wanted


EVERYWHERE = SearchLimits()


def team_id(conversation: object) -> str:
    """Return the id by which an agent reads a conversation of its team; '' if it cannot be read."""
    return f"{_TEAM}{conversation}" if conversation else ""


def team_conversation(id: str) -> int | None:
    """Return the conversation number in an id from `team_id`; None for any other id or name."""
    number = id.strip().removeprefix(_TEAM)
    return (
        int(number)
        if id.strip().startswith(_TEAM) and number.isascii() and number.isdigit()
        else None
    )


class SearchResult(NamedTuple):
    """A message that a search found: its session, its speaker, its time (seconds since the epoch,
    or None), the snippet around the match, and its conversation, '' if none."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class SearchResults(list[SearchResult]):
    """The results of a search, the best first. `notice` tells the agent how far the search reached,
    '' if there is nothing to report."""

    def __init__(self, found: Iterable[SearchResult] = (), notice: str = "") -> None:
        super().__init__(found)
        self.notice = notice


class GraphFact(NamedTuple):
    """A fact of the graph: a relation between two things. It is true from `valid_at` to
    `invalid_at`; `expired_at` is when the graph learned that it ended. Times are ISO 8601, '' if
    unknown. `sessions` are the ids of its sessions."""

    id: str
    group: str
    name: str
    fact: str
    valid_at: str
    invalid_at: str
    expired_at: str
    sessions: tuple[str, ...] = ()

    @property
    def times(self) -> str:
        """The first and last day of its validity, '' if unknown."""
        since = f"since {self.valid_at[:10]}" if self.valid_at else ""
        until = (
            f"until {self.invalid_at[:10]}"
            if self.invalid_at
            else "superseded"
            if self.expired_at
            else ""
        )
        return ", ".join([part for part in (since, until) if part])


class Task(NamedTuple):
    """A scheduled task: `schedule_type` is cron, interval or once, `context_mode` group or
    isolated. `jid` is the id of the chat that its answers go to. Times are ISO 8601 in UTC, or
    None."""

    id: str
    group: str
    jid: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    next_run: str | None
    last_run: str | None
    last_result: str | None
    status: str
    created_at: str

    def row(self) -> dict[str, object]:
        """Return the task as a dict of database columns."""
        columns = {"group": "group_folder", "jid": "chat_jid"}
        return {columns.get(name, name): value for name, value in self._asdict().items()}


class ListedChat(NamedTuple):
    """A known chat and the group that answers in it, '' for none. `trigger` is the pattern that
    addresses its agent, '' if it answers everything; `last_activity` is ISO 8601 in UTC, '' for
    never."""

    chat: str
    name: str
    group: str
    trigger: str
    last_activity: str


class Administration(Protocol):
    """A host's services for the agent of one of its groups, beyond its sessions.

    They are the tasks that it may change, the next one first, and for main the chats, groups' chats
    first, and the groups. The agent's own `group` is fixed at construction; as an argument '' means
    that one, and only main may name others. Methods raise as Backend's do."""

    group: str
    is_main: bool

    def tasks(self) -> list[Task]: ...
    def schedule(
        self, group: str, prompt: str, schedule_type: str, schedule_value: str, context_mode: str
    ) -> Task: ...
    def update_task(self, task_id: str, changes: dict[str, str]) -> Task: ...
    def cancel_task(self, task_id: str) -> None: ...
    def chats(self) -> list[ListedChat]: ...
    def register_group(self, group: str, chat: str, name: str, trigger: str) -> ListedChat: ...
    def update_group(self, group: str, changes: dict[str, str]) -> ListedChat: ...
