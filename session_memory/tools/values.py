"""The values that the tools exchange with a backend, and the services of a host. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Search = Callable[[str, int, "SearchLimits"], list["SearchResult"]]


_TEAM = "team-"  # before the number of a conversation, in an id from search_team


class RefusedError(SessionMemoryError):
    """A request that cannot be fulfilled; message and hint are for the model."""


class ListedSession(NamedTuple):
    """A session that the agent may see: `id` is the argument of resume_session, `session_id` the runtime's own id.

    `modified` is in seconds since the epoch, None if unknown. `is_active` marks the agent's current session. `group` is
    set only for a session of another group, `runtime` only for one of another runtime.
    """

    id: str
    name: str
    session_id: str
    modified: float | None = None
    is_active: bool = False
    group: str = ""
    runtime: str = ""


class SearchLimits(NamedTuple):
    """Limits of a search: from `since` and before `until`, in milliseconds since the epoch, None for no limit; in
    directories that contain `project`, ignoring case."""

    since: int | None = None
    until: int | None = None
    project: str = ""

    def fits(self, milliseconds: float | None, *directories: str) -> bool:
        """Return whether a message of that time, in sessions started in these directories, is within the limits."""
        if self.since is not None and (milliseconds is None or milliseconds < self.since):
            return False
        if self.until is not None and (milliseconds is None or milliseconds >= self.until):
            return False
        project = self.project.casefold()
        return not project or any(project in directory.casefold() for directory in directories)


EVERYWHERE = SearchLimits()


def team_id(conversation: object) -> str:
    """Return the id by which an agent reads a conversation of its team; '' if it cannot be read."""
    return f"{_TEAM}{conversation}" if conversation else ""


def team_conversation(id: str) -> int | None:
    """Return the conversation number in an id from `team_id`; None for any other id or name."""
    number = id.strip().removeprefix(_TEAM)
    return int(number) if id.strip().startswith(_TEAM) and number.isascii() and number.isdigit() else None


class SearchResult(NamedTuple):
    """A message that a search found: its session, its speaker, its time (seconds since the epoch, or None), the snippet
    around the match, and its conversation, '' if none."""

    session_id: str
    session_name: str
    role: str
    timestamp: float | None
    snippet: str
    conversation: str


class SearchResults(list[SearchResult]):
    """The results of a search, the best first. `notice` tells the agent how far the search reached, '' if there is
    nothing to report."""

    def __init__(self, found: Iterable[SearchResult] = (), notice: str = "") -> None:
        super().__init__(found)
        self.notice = notice


class Task(NamedTuple):
    """A scheduled task: `schedule_type` is cron, interval or once, `context_mode` group or isolated. `jid` is the id of
    the chat that its answers go to. Times are ISO 8601 in UTC, or None."""

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
    """A known chat and the group that answers in it, '' for none. `trigger` is the pattern that addresses its agent, ''
    if it answers everything; `last_activity` is ISO 8601 in UTC, '' for never."""

    chat: str
    name: str
    group: str
    trigger: str
    last_activity: str


class Administration(Protocol):
    """A host's services for the agent of one of its groups, beyond its sessions. The group is fixed at construction;
    `is_main` marks the group that administers the others.

    The argument `group` is '' for the agent's own. Methods raise as those of Backend do.
    """

    @property
    def group(self) -> str:
        """The agent's own group."""

    @property
    def is_main(self) -> bool:
        """True if the agent may name other groups."""

    def tasks(self) -> list[Task]:
        """Return the tasks that the agent may change, the next one first."""

    def schedule(self, group: str, prompt: str, schedule_type: str, schedule_value: str, context_mode: str) -> Task:
        """Add a task, unless the same one exists; return it."""

    def update_task(self, task_id: str, changes: dict[str, str]) -> Task:
        """Change the given properties of a task."""

    def cancel_task(self, task_id: str) -> None:
        """Delete a task."""

    def chats(self) -> list[ListedChat]:
        """Return the chats of the host, those of groups first. For main."""

    def register_group(self, group: str, chat: str, name: str, trigger: str) -> ListedChat:
        """Register a group that answers in a chat; '' for one used from the terminal. For main."""

    def update_group(self, group: str, changes: dict[str, str]) -> ListedChat:
        """Change the name, trigger or chat of a group. For main."""
